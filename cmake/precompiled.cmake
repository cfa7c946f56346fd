# What nearly every file outside the user's process includes is read once and not two hundred times.
# Files still include what they use: clang-tidy reads them without this (tools/check_tidy.py).
option(VRAMSCOPE_PRECOMPILED "compile common headers once" ON)

# ccache needs the first two to distinguish precompiled headers by their contents. The others are warnings of the optimizer: what comes
# out of a precompiled header does not count as a system header for them, and g++ 12 finds impossible lengths in std::string.
add_library(vs_precompiled_flags INTERFACE)
target_compile_options(vs_precompiled_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
  "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>"
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-dangling-pointer;-Wno-free-nonheap-object;-Wno-stringop-overflow;-Wno-stringop-overread>")

# Makes the carrier of a precompiled header on first use. All targets that share it are compiled with the same options.
function(vs_precompiled_carrier carrier)
  if(TARGET ${carrier})
    return()
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${carrier}.cpp CONTENT "// Nothing but the precompiled header.\n")
  add_library(${carrier} STATIC ${CMAKE_BINARY_DIR}/${carrier}.cpp)
  vs_common(${carrier})
  target_link_libraries(${carrier} PRIVATE vs_sanitize vs_precompiled_flags)
  target_precompile_headers(${carrier} PRIVATE ${ARGN})
endfunction()

set(VRAMSCOPE_COMMON_HEADERS <algorithm> <array> <chrono> <cstdint> <cstring> <filesystem> <functional> <map> <memory> <optional> <span>
  <string> <string_view> <utility> <vector> <fmt/format.h> <tsl/robin_map.h>)

# vs_precompiled(vs_trace): for a target of ordinary C++. vs_precompiled(trace_test TEST): GoogleTest is in it too.
function(vs_precompiled target)
  cmake_parse_arguments(A "TEST" "" "" ${ARGN})
  if(NOT VRAMSCOPE_PRECOMPILED)
    return()
  endif()
  if(A_TEST)
    set(carrier vs_precompiled_tests)
    vs_precompiled_carrier(${carrier} ${VRAMSCOPE_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(${carrier} PRIVATE GTest::gtest GTest::gmock) # for their definitions: they have to be the same
  else()
    set(carrier vs_precompiled_headers)
    vs_precompiled_carrier(${carrier} ${VRAMSCOPE_COMMON_HEADERS})
  endif()
  target_link_libraries(${target} PRIVATE vs_precompiled_flags)
  target_precompile_headers(${target} REUSE_FROM ${carrier})
endfunction()
