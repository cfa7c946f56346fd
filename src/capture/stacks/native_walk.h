// The calling thread's native frames.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::stacks {

struct NativeLimits {
  std::uint64_t stop_begin = 0;  // a return address in this range ends the walk (the interpreter's own frames)
  std::uint64_t stop_end = 0;
};

// Return addresses, innermost first, without those of this library. Follows frame pointers: exact for code built with them, and
// ends at the first function that uses the register for something else. Never leaves the thread's stack.
std::size_t walk_frame_pointers(std::uint64_t* out, std::size_t capacity, const NativeLimits& limits);

// By unwind tables (libgcc's _Unwind_Backtrace, if the program has loaded it): always exact, about 200 ns per frame.
std::size_t walk_unwind_tables(std::uint64_t* out, std::size_t capacity, const NativeLimits& limits);

}  // namespace vramscope::stacks
