// Finding things in the libraries of this process, bypassing our own definitions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::capture {

// Keeps the loaded library whose file name starts with `file_name` where it is, even if the program closes it. False if there is
// none.
bool keep_loaded(const char* file_name);

// Whether this address is code of a loaded object.
bool is_code(const void* address);

// Copies `bytes` bytes from `from`, whatever `from` is. False if it cannot be read. Slow (two system calls): for checking once
// whether a foreign layout is as expected.
bool read_safely(const void* from, void* to, std::size_t bytes);

}  // namespace vramscope::capture
