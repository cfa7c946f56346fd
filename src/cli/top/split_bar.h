// A bar of several parts, exact to an eighth of a character: on a bar of 23 characters, half a percent can be seen.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/top/canvas.h"

namespace vramscope::cli::top {

struct BarPart {
  std::uint64_t bytes = 0;
  std::int32_t colour = -1;
  const char* plain = "#";  // in ASCII
};

// Parts from left to right, to the scale of `whole`; a part of any size is at least an eighth wide. The rest gets `empty`.
void split_bar(Canvas& canvas, int x, int y, int width, const std::vector<BarPart>& parts, std::uint64_t whole,
               std::int32_t empty, bool ascii);

}  // namespace vramscope::cli::top
