// Functions of loaded objects, found in their own symbol tables: the library exports dlsym and dlvsym itself, so the dynamic
// linker would return ours. Nor may we call dlopen and dlsym when the program allocates: they wait for a thread that is loading
// a library, which may wait for the allocation, and they change what dlerror() returns.
#pragma once

#include <cstdint>

namespace vramscope::capture {

struct LoadedObject {
  const char* path;
  std::uintptr_t base;
  const void* dynamic;  // its dynamic section; NULL: there is no such object
};

// The address of `name` in the C library (libc.so.6, or libdl.so.2 before glibc 2.34); NULL if it has none. Works before the
// first constructor has run, and calls nothing that a sanitizer could have replaced.
void* libc_function(const char* name);

// The loaded object whose file name starts with `file_name` ("libtensorflow_framework.so"). Valid as long as it stays loaded; the
// libraries of C++ frameworks are never unloaded (they define unique symbols).
LoadedObject loaded_object(const char* file_name);

// The loaded object that has this address.
LoadedObject object_with(const void* address);

// The address of a function or a variable that this object defines; NULL if it has none.
void* symbol_in(const LoadedObject& object, const char* name);

// The address of a function or a variable in the first object that defines it, in load order; NULL if none does. Unlike dlsym,
// it also finds what was loaded with RTLD_LOCAL, and leaves nothing on the heap if there is none.
void* symbol_in_any(const char* name);

}  // namespace vramscope::capture
