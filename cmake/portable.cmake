# What leaves the build tree must run on a machine that only has glibc: third-party code goes in statically, and what exists only
# as a shared library travels beside the program in lib/, found through $ORIGIN. tests/e2e/test_portable.py reads the result.

# vs_archive(zstd libzstd.a): an interface target that links the static archive.
function(vs_archive name archive)
  find_library(VRAMSCOPE_ARCHIVE_${name} NAMES ${archive} REQUIRED)
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE ${VRAMSCOPE_ARCHIVE_${name}})
endfunction()
vs_archive(zstd libzstd.a)
vs_archive(xxhash libxxhash.a)

# vs_portable(vramscope): for a program or library that is shipped. Puts it into the top of the build folder.
function(vs_portable target)
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/lib")
  target_link_options(${target} PRIVATE -static-libgcc -Wl,--as-needed -Wl,-z,relro,-z,now)
  if(NOT VRAMSCOPE_SANITIZE)
    target_link_options(${target} PRIVATE -static-libstdc++)
  endif()
endfunction()

# vs_ship(libfoo.so.1): copies a shared library that has no static form, and all it needs beyond glibc, into lib/ of the build folder.
function(vs_ship library)
  find_library(VRAMSCOPE_SHIPPED_${library} NAMES ${library} REQUIRED)
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${VRAMSCOPE_SHIPPED_${library}} RESOLVED_DEPENDENCIES_VAR needed
    POST_EXCLUDE_REGEXES "/(ld-linux-x86-64|libc|libdl|libm|libpthread|librt|libresolv)\\.so\\.")
  foreach(file ${VRAMSCOPE_SHIPPED_${library}} ${needed})
    file(COPY ${file} DESTINATION ${CMAKE_BINARY_DIR}/lib FOLLOW_SYMLINK_CHAIN)
  endforeach()
endfunction()
