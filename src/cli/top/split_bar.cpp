#include "cli/top/split_bar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace vramscope::cli::top {

namespace {

constexpr int kEighths = 8;
constexpr std::array<std::string_view, kEighths + 1> kLeft = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

}  // namespace

void split_bar(Canvas& canvas, int x, int y, int width, const std::vector<BarPart>& parts, std::uint64_t whole,
               std::int32_t empty, bool ascii) {
  if (width <= 0 || whole == 0) return;
  const int all = width * kEighths;
  std::vector<std::int32_t> colour(static_cast<std::size_t>(all), empty);
  std::vector<const char*> plain(static_cast<std::size_t>(all), ".");
  std::uint64_t before = 0;
  for (const BarPart& part : parts) {
    const auto edge = [&](std::uint64_t bytes) {
      return static_cast<int>(std::lround(std::min(1.0, static_cast<double>(bytes) / static_cast<double>(whole)) * all));
    };
    const int from = std::min(edge(before), all - 1);
    const int to = std::max(edge(before + part.bytes), part.bytes > 0 ? from + 1 : from);
    for (int i = from; i < to; ++i) {
      colour[static_cast<std::size_t>(i)] = part.colour;
      plain[static_cast<std::size_t>(i)] = part.plain;
    }
    before += part.bytes;
  }
  for (int cell = 0; cell < width; ++cell) {
    const auto first = static_cast<std::size_t>(cell * kEighths);
    const std::int32_t left = colour[first];
    // A character has two colors: what begins in it, and what comes after.
    std::size_t count = 1;
    while (count < kEighths && colour[first + count] == left) ++count;
    const std::int32_t next = count < kEighths ? colour[first + count] : empty;
    if (ascii)
      canvas.put(x + cell, y, plain[first], {.colour = left});
    else if (left == empty)
      canvas.put(x + cell, y, "▁", {.colour = empty});
    else
      canvas.put(x + cell, y, kLeft[count], {.colour = left, .background = next == empty ? std::int32_t{-1} : next});
  }
}

}  // namespace vramscope::cli::top
