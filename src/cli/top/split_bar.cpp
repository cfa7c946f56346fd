#include "cli/top/split_bar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace vramscope::cli::top {

namespace {

constexpr int kEighths = 8;
constexpr std::array<std::string_view, kEighths + 1> kLeft = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

// A character has two colors: what begins in it, and what comes after.
struct Halves {
  std::int32_t left, right;
  std::size_t count;  // eighths of the left one
};

std::int32_t most_frequent(std::span<const std::int32_t> colours) {
  return *std::ranges::max_element(colours, {}, [&](std::int32_t c) { return std::ranges::count(colours, c); });
}

// Of more than two colors in one character, those that take most of it are shown. Where the bar ends in it, the end stays in its
// place: the length is what is compared with other bars.
Halves halves_of(std::span<const std::int32_t> eighths, std::int32_t empty) {
  const auto used = static_cast<std::size_t>(std::ranges::find(eighths, empty) - eighths.begin());
  if (used == 0) return {empty, empty, 0};
  const auto same =
      static_cast<std::size_t>(std::ranges::find_if(eighths, [&](std::int32_t c) { return c != eighths[0]; }) - eighths.begin());
  if (used < eighths.size() && same < used) return {most_frequent(eighths.first(used)), empty, used};
  return {eighths[0], same < eighths.size() ? most_frequent(eighths.subspan(same)) : empty, same};
}

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
    const std::span<const std::int32_t> eighths = std::span(colour).subspan(first, kEighths);
    const Halves halves = halves_of(eighths, empty);
    if (ascii)
      canvas.put(x + cell, y, plain[first + static_cast<std::size_t>(std::ranges::find(eighths, halves.left) - eighths.begin())],
                 {.colour = halves.left});
    else if (halves.left == empty)
      canvas.put(x + cell, y, "▁", {.colour = empty});
    else
      canvas.put(x + cell, y, kLeft[halves.count],
                 {.colour = halves.left, .background = halves.right == empty ? std::int32_t{-1} : halves.right});
  }
}

}  // namespace vramscope::cli::top
