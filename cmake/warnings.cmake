# Warnings are errors, for our own targets only.
add_library(vs_warnings INTERFACE)
target_compile_options(vs_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual -Wunused -Wnull-dereference -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 and 13 report false positives of these inside std::expected and std::vector at -O2.
  target_compile_options(vs_warnings INTERFACE -Wno-null-dereference -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # clang reports what std::stable_sort of libstdc++ 12 itself uses (get_temporary_buffer).
  target_compile_options(vs_warnings INTERFACE -Wno-deprecated-declarations)
endif()
