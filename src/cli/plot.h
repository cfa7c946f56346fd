// Curves in the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vramscope::cli {

// A filled curve of braille dots (2 x 4 in a character), zero based. Each dot column is the maximum of the values that fall into
// it. The highest and the lowest value are written on the rows where they lie, the ends of the axis below.
std::string plot(const std::vector<std::uint64_t>& values, const std::string& left, const std::string& right, bool ascii);

// A bar of eighth blocks, `width` characters for `whole`.
std::string bar(std::uint64_t part, std::uint64_t whole, std::size_t width, bool ascii);

}  // namespace vramscope::cli
