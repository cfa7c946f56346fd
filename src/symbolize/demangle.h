// C++ names for people, in bounded time and memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vramscope::symbolize {

// No shown name is longer. The longest names of TensorFlow and PyTorch have a few thousand characters.
inline constexpr std::size_t kLongestName = 16 * 1024;

// The name as in the source, or the mangled name if it is not one of C++, or if either is too long. Cut at kLongestName bytes,
// with an ellipsis. `mangled` must be followed by a NUL.
std::string demangled(std::string_view mangled);

}  // namespace vramscope::symbolize
