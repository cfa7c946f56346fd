#include "cli/show/colour.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "analyze/gen/categories.h"

namespace vramscope::cli {

namespace {

constexpr std::int32_t kUnknownColour = 0x999999;

enum class When { never, automatic, always };
When g_when = When::automatic;  // set once, while the command line is read

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

}  // namespace

void choose_colour(std::string_view when) {
  g_when = when == "never" ? When::never : when == "always" ? When::always : When::automatic;
}

bool wants_colour(std::FILE* stream) {
  if (g_when != When::automatic) return g_when == When::always;
  return variable("NO_COLOR").empty() && variable("TERM") != "dumb" && isatty(fileno(stream)) == 1;
}

Depth terminal_depth() {
  if (g_when == When::never) return Depth::none;
  if (g_when != When::always && (!variable("NO_COLOR").empty() || variable("TERM") == "dumb")) return Depth::none;
  if (variable("COLORTERM") == "truecolor" || variable("COLORTERM") == "24bit") return Depth::truecolour;
  return variable("TERM").find("256") != std::string_view::npos ? Depth::ansi256 : Depth::ansi16;
}

std::string colour_code(std::int32_t colour, bool background, Depth depth) {
  const int r = (colour >> 16) & 255, g = (colour >> 8) & 255, b = colour & 255;
  if (depth == Depth::truecolour) return fmt::format("{};2;{};{};{}", background ? 48 : 38, r, g, b);
  if (depth == Depth::ansi256) {
    const auto level = [](int v) { return (v * 5 + 127) / 255; };
    return fmt::format("{};5;{}", background ? 48 : 38, 16 + 36 * level(r) + 6 * level(g) + level(b));
  }
  const int bits = (r > 127 ? 1 : 0) | (g > 127 ? 2 : 0) | (b > 127 ? 4 : 0);
  return fmt::format("{}", (background ? 40 : 30) + bits);
}

std::string painted(std::string_view text, std::int32_t colour) {
  if (!wants_colour(stdout) || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", colour_code(colour, false, terminal_depth()), text);
}

std::int32_t category_colour(std::string_view category) {
  // In the order of the categories.
  static constexpr std::int32_t kColours[analyze::kShown] = {0x338ec1, 0x1f6a96, 0x56b4e9, 0x98a3b0, 0xf0e442, 0x009e73,
                                                             0xe69f00, 0xc9a27a, 0xb9a3de, 0xcc79a7, 0x9c5a82, kUnknownColour};
  const auto* const found = std::ranges::find(analyze::kCategoryNames, category);
  return found != std::end(analyze::kCategoryNames) ? kColours[found - analyze::kCategoryNames] : kUnknownColour;
}

std::string in_category(std::string_view category, std::string_view text) { return painted(text, category_colour(category)); }

}  // namespace vramscope::cli
