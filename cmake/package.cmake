# The Debian package: `cmake --build build && cpack --config build/CPackConfig.cmake`. The program finds its libraries and its Python
# side in ../lib/vramscope.
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(TARGETS vramscope RUNTIME DESTINATION bin)
install(FILES $<TARGET_FILE:vramscope_inject> $<TARGET_FILE:vramscope_tfops> DESTINATION lib/vramscope)
install(DIRECTORY python/vramscope DESTINATION lib/vramscope/python PATTERN __pycache__ EXCLUDE)
install(FILES LICENSE DESTINATION share/doc/vramscope RENAME copyright) # where Debian wants it
install(FILES README.md CHANGELOG.md DESTINATION share/doc/vramscope)
install(DIRECTORY examples/metrics DESTINATION share/doc/vramscope/examples)
# The man pages are what --help says, so that they are written when the program exists.
install(CODE "execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/gen_man.py ${CMAKE_BINARY_DIR}/vramscope
  \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/man/man1 COMMAND_ERROR_IS_FATAL ANY)")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME vramscope)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "the vramscope authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "GPU memory profiler: every byte on the GPU, accounted for")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${VRAMSCOPE_GLIBC})")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS python3)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
include(CPack)
