// Text with colors, cell by cell: what a frame of the terminal view consists of. Knows nothing about memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/show/colour.h"

namespace vramscope::cli::top {

struct Style {
  std::int32_t colour = -1;  // 0xRRGGBB, -1 = the terminal's own
  std::int32_t background = -1;
  bool bold = false, dim = false;
  bool operator==(const Style&) const = default;
};

struct ScreenCell {
  std::string text = " ";  // one character on the screen
  Style style;
  bool operator==(const ScreenCell&) const = default;
};

class Canvas {
 public:
  Canvas(int width, int height);
  int width() const { return width_; }
  int height() const { return height_; }
  // Writes from (x, y) on; what is outside is cut. Returns the column after the text.
  int put(int x, int y, std::string_view text, const Style& style = {});
  int put_right(int x_end, int y, std::string_view text, const Style& style = {});
  void fill(int x, int y, int count, std::string_view character, const Style& style);
  void background(int y, std::int32_t colour);
  const ScreenCell& cell(int x, int y) const {
    return cells_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x)];
  }

  // What to send to a terminal that shows `before` so that it shows this: changed cells only.
  std::string changes_from(const Canvas* before, Depth depth) const;
  // Lines without color, for scripts and tests.
  std::string plain() const;

 private:
  int width_, height_;
  std::vector<ScreenCell> cells_;
};

// A curve in braille, 2 x 4 dots per character, filled from below. `values` are in 0..1, two per character.
void plot(Canvas& canvas, int x, int y, int width, int height, const std::vector<double>& values, const Style& style, bool ascii);

// Screen columns of a text: characters, which is right for what is printed here.
int columns_of(std::string_view text);
std::vector<std::string_view> characters(std::string_view text);

}  // namespace vramscope::cli::top
