// Finding things in the libraries of this process, past our own definitions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::capture {

// glibc's dlsym, not the one that this library may export.
void* real_dlsym(void* handle, const char* name);

// A handle of the loaded library whose file name starts with `file_name` ("libtensorflow_framework.so"); NULL if there is none.
// Works for libraries that were opened RTLD_LOCAL, which RTLD_NEXT does not see.
void* loaded_library(const char* file_name);

// Is this address code of a loaded object?
bool is_code(const void* address);

// Copies `bytes` bytes from `from`, whatever `from` is. False where it cannot be read. Slow (two system calls): for checking once
// whether a foreign layout is what we think it is.
bool read_safely(const void* from, void* to, std::size_t bytes);

}  // namespace vramscope::capture
