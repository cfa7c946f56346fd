#include "cli/top/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace vramscope::cli::top {

namespace {

std::string style_code(const Style& style, Depth depth) {
  std::string out = "\x1b[0";
  if (style.bold) out += ";1";
  if (style.dim && depth != Depth::none) out += ";2";
  if (depth != Depth::none && style.colour >= 0) out += ";" + colour_code(style.colour, false, depth);
  if (depth != Depth::none && style.background >= 0) out += ";" + colour_code(style.background, true, depth);
  return out + "m";
}

std::string utf8(std::uint32_t code) {
  return {static_cast<char>(0xe0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 63)),
          static_cast<char>(0x80 | (code & 63))};
}

}  // namespace

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 1;
    while (i + length < text.size() && (static_cast<unsigned char>(text[i + length]) & 0xc0) == 0x80) ++length;
    out.push_back(text.substr(i, length));
    i += length;
  }
  return out;
}

int columns_of(std::string_view text) { return static_cast<int>(characters(text).size()); }

Canvas::Canvas(int width, int height)
    : width_(std::max(1, width)), height_(std::max(1, height)), cells_(static_cast<std::size_t>(width_ * height_)) {}

int Canvas::put(int x, int y, std::string_view text, const Style& style) {
  for (const std::string_view character : characters(text)) {
    if (x >= 0 && x < width_ && y >= 0 && y < height_) {
      ScreenCell& cell = cells_[static_cast<std::size_t>(y * width_ + x)];
      // A name from a recorded program must not move the cursor.
      cell.text = character.size() == 1 && (static_cast<unsigned char>(character[0]) < 0x20 || character[0] == 0x7f)
                      ? "?"
                      : std::string(character);
      const std::int32_t background = style.background >= 0 ? style.background : cell.style.background;
      cell.style = style;
      cell.style.background = background;
    }
    ++x;
  }
  return x;
}

int Canvas::put_right(int x_end, int y, std::string_view text, const Style& style) {
  return put(x_end - columns_of(text), y, text, style);
}

void Canvas::fill(int x, int y, int count, std::string_view character, const Style& style) {
  for (int i = 0; i < count; ++i) put(x + i, y, character, style);
}

void Canvas::background(int y, std::int32_t colour) {
  if (y < 0 || y >= height_) return;
  for (int x = 0; x < width_; ++x) cells_[static_cast<std::size_t>(y * width_ + x)].style.background = colour;
}

std::string Canvas::changes_from(const Canvas* before, Depth depth) const {
  const bool same_size = before != nullptr && before->width_ == width_ && before->height_ == height_;
  std::string out = same_size ? "" : "\x1b[0m\x1b[2J";
  Style now{.colour = -2};
  for (int y = 0; y < height_; ++y) {
    int cursor = -1;
    for (int x = 0; x < width_; ++x) {
      const ScreenCell& wanted = cell(x, y);
      if (same_size ? before->cell(x, y) == wanted : wanted == ScreenCell{}) continue;
      if (cursor != x) out += fmt::format("\x1b[{};{}H", y + 1, x + 1);
      if (!(wanted.style == now)) {
        out += style_code(wanted.style, depth);
        now = wanted.style;
      }
      out += wanted.text;
      cursor = x + 1;
    }
  }
  return out;
}

std::string Canvas::plain() const {
  std::string out;
  for (int y = 0; y < height_; ++y) {
    std::string line;
    for (int x = 0; x < width_; ++x) line += cell(x, y).text;
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

void plot(Canvas& canvas, int x, int y, int width, int height, const std::vector<double>& values, const Style& style,
          bool ascii) {
  // Dots of a braille character, from the bottom up: left column 7 3 2 1, right column 8 6 5 4.
  constexpr std::array<std::array<std::uint32_t, 4>, 2> kDots = {{{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}}};
  for (int column = 0; column < width; ++column)
    for (int row = 0; row < height; ++row) {
      std::uint32_t dots = 0;
      for (std::size_t half = 0; half < 2; ++half) {
        const std::size_t at = static_cast<std::size_t>(column) * 2 + half;
        const double value = at < values.size() ? std::clamp(values[at], 0.0, 1.0) : 0;
        const int filled = value > 0 ? std::max(1, static_cast<int>(std::lround(value * height * 4))) : 0;
        const int below = (height - 1 - row) * 4;  // dots in this character
        for (int dot = 0; dot < 4; ++dot)
          if (filled > below + dot) dots |= kDots[half][static_cast<std::size_t>(dot)];
      }
      if (dots != 0) canvas.put(x + column, y + row, ascii ? "#" : utf8(0x2800 + dots), style);
    }
}

}  // namespace vramscope::cli::top
