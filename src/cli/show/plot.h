// Curves in the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/show/unit.h"

namespace vramscope::cli {

// A filled curve of braille dots (2 x 4 per character), starting at zero. Each dot column is the maximum of its values. The
// highest and the lowest value are written on their rows, the ends of the axis below. The dots have the category's color if one
// is given.
std::string plot(const std::vector<std::uint64_t>& values, const std::string& left, const std::string& right, bool ascii,
                 const std::string& category = {});

// A bar of eighth blocks, `width` characters for `whole`.
std::string bar(std::uint64_t part, std::uint64_t whole, std::size_t width, bool ascii);

// Names with their figures on as few lines as possible; a name and its figure stay together.
class Legend {
 public:
  explicit Legend(std::size_t width) : width_(width) {}  // of a line; 0 = unlimited
  void add(std::string_view part, std::size_t columns);  // that `part` takes on the screen: colors take none
  std::string text() const { return text_ + "\n"; }

 private:
  static constexpr std::size_t kBefore = 2;  // spaces
  std::size_t width_, used_ = 0;
  std::string text_;
};

// All parts side by side in one bar, each in its category's color, and a legend below. Empty without colors, because the parts
// could not be distinguished.
std::string category_bar(const std::vector<std::pair<std::string, std::uint64_t>>& parts, const Unit& unit, std::size_t width);

}  // namespace vramscope::cli
