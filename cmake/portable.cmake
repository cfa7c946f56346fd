# What leaves the build tree must run on any machine with glibc 2.28 or later (manylinux_2_28: Debian 10, RHEL 8, Ubuntu 20.04), though
# it is built on a newer one: third-party code and the C++ run-time library go in statically, and the linker is shown glibc as it
# looked in 2.28. tests/e2e/test_portable.py reads the result, `tools/bare.sh wheel` runs it on an older system.
#
# Why not a compiler with its own glibc (zig): it brings another C++ library, which the archives of the distribution do not fit, and
# 100 MB to fetch. Why not .symver lines: they do not reach into those archives, and what they miss is noticed only by the user. Here a
# symbol that is too young is an error of the linker.
set(VRAMSCOPE_GLIBC 2.28)

# vs_archive(zstd libzstd.a): an interface target that links the static archive.
function(vs_archive name archive)
  find_library(VRAMSCOPE_ARCHIVE_${name} NAMES ${archive} REQUIRED)
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE ${VRAMSCOPE_ARCHIVE_${name}})
endfunction()
vs_archive(zstd libzstd.a)
vs_archive(xxhash libxxhash.a)

# cmake/old_glibc: libc.so and libm.so of then, and code for what they lack.
set(VS_OLD_GLIBC ${CMAKE_BINARY_DIR}/glibc-${VRAMSCOPE_GLIBC})
add_library(vs_younger STATIC EXCLUDE_FROM_ALL cmake/old_glibc/younger.c cmake/old_glibc/c23.c cmake/old_glibc/start.c)
set_target_properties(vs_younger PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_options(vs_younger PRIVATE -O2 -Wall -Wextra -Werror -ffunction-sections -fdata-sections -fno-stack-protector)
add_custom_command(OUTPUT ${VS_OLD_GLIBC}/libc.so
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/old_glibc/stubs.py ${VS_OLD_GLIBC} ${VRAMSCOPE_GLIBC} ${CMAKE_C_COMPILER}
    $<TARGET_FILE:vs_younger>
  DEPENDS ${CMAKE_SOURCE_DIR}/cmake/old_glibc/stubs.py vs_younger VERBATIM)
add_custom_target(vs_old_glibc DEPENDS ${VS_OLD_GLIBC}/libc.so)

# vs_portable(vramscope): for a program or library that is shipped. Puts it into the top of the build folder.
function(vs_portable target)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_link_options(${target} PRIVATE -Wl,--as-needed -Wl,-z,relro,-z,now)
  get_target_property(type ${target} TYPE)
  set(moved -l:libdl.so.2) # what became part of libc in 2.34
  if(type STREQUAL "EXECUTABLE")
    if(VRAMSCOPE_SANITIZE)
      return() # the run-time library of a sanitizer wants the glibc of this machine
    endif()
    list(APPEND moved -l:libpthread.so.0)
    target_link_options(${target} PRIVATE -Wl,--wrap=__libc_start_main)
  endif()
  add_dependencies(${target} vs_old_glibc)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${VS_OLD_GLIBC}/libc.so)
  target_link_options(${target} PRIVATE -static-libgcc -static-libstdc++ -L${VS_OLD_GLIBC})
  target_link_libraries(${target} PRIVATE -Wl,--no-as-needed ${moved} -Wl,--as-needed)
endfunction()
