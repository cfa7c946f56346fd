// The name, file and lines of a code object. Read from memory that a frame of the calling thread keeps alive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/stacks/python_layout.h"

namespace vramscope::stacks {

// Copies a str object as UTF-8, cut at `capacity`. Returns the number of bytes, 0 for anything that is not a readable str.
std::size_t read_text(const PythonLayout& layout, std::uint64_t object, char* out, std::size_t capacity);

// Finds text_kind_shift with an ASCII str. False if no known offset fits.
bool learn_text_state(PythonLayout& layout, std::uint64_t ascii_text);

// Line of the instruction at byte offset `offset`, 0 if the table has none or cannot be read.
std::uint32_t line_at(const PythonLayout& layout, std::uint64_t code, std::int64_t offset);

}  // namespace vramscope::stacks
