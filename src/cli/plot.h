// Curves in the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace vramscope::cli {

// A filled curve of braille dots (2 x 4 in a character), zero based. Each dot column is the maximum of the values that fall into
// it. The highest and the lowest value are written on the rows where they lie, the ends of the axis below. The dots have the
// category's colour where one is given.
std::string plot(const std::vector<std::uint64_t>& values, const std::string& left, const std::string& right, bool ascii,
                 const std::string& category = {});

// A bar of eighth blocks, `width` characters for `whole`.
std::string bar(std::uint64_t part, std::uint64_t whole, std::size_t width, bool ascii);

// All parts side by side in one bar, each in its category's colour, and a legend below. Empty where there are no colours: the
// parts could not be told apart.
std::string category_bar(const std::vector<std::pair<std::string, std::uint64_t>>& parts, std::size_t width);

}  // namespace vramscope::cli
