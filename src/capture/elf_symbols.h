// Functions of the C library, found in its own symbol table: the library exports dlsym and dlvsym itself, so that asking the
// dynamic linker for them would find ourselves.
#pragma once

namespace vramscope::capture {

// The address of `name` in the C library (libc.so.6, or libdl.so.2 before glibc 2.34); NULL if it has none.
void* libc_function(const char* name);

}  // namespace vramscope::capture
