# Warnings are errors, for our own targets only.
add_library(vs_warnings INTERFACE)
target_compile_options(vs_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual -Wunused -Wnull-dereference -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these inside std::expected and std::vector at -O2.
  target_compile_options(vs_warnings INTERFACE -Wno-null-dereference -Wno-maybe-uninitialized -Wno-restrict)
endif()
