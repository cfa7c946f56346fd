#include "cli/show/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/show/colour.h"
#include "cli/show/unit.h"

namespace vramscope::cli {
namespace {

// So many of `cells` as `part` is of `whole`, to the nearest.
std::size_t scaled(std::uint64_t part, std::uint64_t whole, std::size_t cells) {
  return static_cast<std::size_t>(
      std::llround(static_cast<double>(part) / static_cast<double>(whole) * static_cast<double>(cells)));
}

constexpr std::size_t kWidth = 60, kHeight = 6;

void append_utf8(std::string& out, unsigned code) {
  out += static_cast<char>(0xe0 | (code >> 12));
  out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
  out += static_cast<char>(0x80 | (code & 0x3f));
}

// Values reduced to `columns` maxima; fewer values are stretched.
std::vector<std::uint64_t> reduce(const std::vector<std::uint64_t>& values, std::size_t columns) {
  std::vector<std::uint64_t> out(columns, 0);
  for (std::size_t c = 0; c < columns; ++c) {
    std::size_t from = c * values.size() / columns, to = std::max(from + 1, (c + 1) * values.size() / columns);
    for (std::size_t i = from; i < std::min(to, values.size()); ++i) out[c] = std::max(out[c], values[i]);
  }
  return out;
}

}  // namespace

std::string plot(const std::vector<std::uint64_t>& values, const std::string& left, const std::string& right, bool ascii,
                 const std::string& category) {
  if (values.size() < 2) return {};
  std::uint64_t high = *std::ranges::max_element(values), low = *std::ranges::min_element(values);
  if (high == 0) return {};
  const Unit unit = Unit::for_largest(high);
  std::size_t columns = ascii ? kWidth : kWidth * 2, rows = ascii ? kHeight : kHeight * 4;
  std::vector<std::size_t> level;
  for (std::uint64_t v : reduce(values, columns)) level.push_back(scaled(v, high, rows));
  auto row_of = [&](std::uint64_t v) { return kHeight - std::clamp<std::size_t>(scaled(v, high, kHeight), 1, kHeight); };
  std::string out;
  for (std::size_t row = 0; row < kHeight; ++row) {
    std::string label;
    if (row == row_of(high))
      label = unit(high);
    else if (row == row_of(low))
      label = unit(low);
    out += fmt::format("  {:>12} │", label);
    std::string dots_of_row;
    for (std::size_t c = 0; c < kWidth; ++c) {
      if (ascii) {
        dots_of_row += level[c] > kHeight - 1 - row ? '#' : '.';
        continue;
      }
      constexpr unsigned kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
      unsigned dots = 0;
      for (std::size_t y = 0; y < 4; ++y)
        for (std::size_t x = 0; x < 2; ++x)
          if (level[c * 2 + x] > rows - 1 - (row * 4 + y)) dots |= kDots[y][x];
      append_utf8(dots_of_row, 0x2800 + dots);
    }
    out += (category.empty() ? dots_of_row : in_category(category, dots_of_row)) + "\n";
  }
  std::size_t gap = kWidth > left.size() + right.size() ? kWidth - left.size() - right.size() : 1;
  return out + fmt::format("  {:>12} └{}{}{}\n", "0", left, std::string(gap, ' '), right);
}

std::string bar(std::uint64_t part, std::uint64_t whole, std::size_t width, bool ascii) {
  if (whole == 0 || part == 0) return {};
  const std::size_t eighths = std::clamp<std::size_t>(scaled(part, whole, width * 8), 1, width * 8);
  if (ascii) return std::string(std::max<std::size_t>(1, eighths / 8), '#');
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) append_utf8(out, 0x2588);
  if (eighths % 8 != 0) append_utf8(out, 0x2590 - static_cast<unsigned>(eighths % 8));
  return out;
}

void Legend::add(std::string_view part, std::size_t columns) {
  if (width_ != 0 && used_ > 0 && used_ + kBefore + columns > width_) {
    text_ += "\n";
    used_ = 0;
  }
  text_.append(kBefore, ' ').append(part);
  used_ += kBefore + columns;
}

std::string category_bar(const std::vector<std::pair<std::string, std::uint64_t>>& parts, const Unit& unit, std::size_t width) {
  if (!wants_colour(stdout)) return {};
  std::uint64_t whole = 0, before = 0;
  for (const auto& [name, bytes] : parts) whole += bytes;
  if (whole == 0) return {};
  auto column = [&](std::uint64_t bytes) { return scaled(bytes, whole, width); };
  std::string out = "  ";
  Legend legend(width + 2);
  for (const auto& [name, bytes] : parts) {
    std::string blocks;
    for (std::size_t c = column(before); c < column(before + bytes); ++c) append_utf8(blocks, 0x2588);
    before += bytes;
    out += in_category(name, blocks);
    std::string square;
    append_utf8(square, 0x25a0);
    const std::string figure = unit(bytes);
    legend.add(fmt::format("{} {} {}", in_category(name, square), name, figure), 2 + name.size() + 1 + figure.size());
  }
  return out + "\n" + legend.text();
}

}  // namespace vramscope::cli
