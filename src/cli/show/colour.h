// Colors of the terminal: how many it has, and what each one stands for. Color never carries meaning alone: there is always a
// word as well.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace vramscope::cli {

enum class Depth { none, ansi16, ansi256, truecolour };

// --color: never, auto (the default: a terminal, unless NO_COLOR is set) or always.
void choose_colour(std::string_view when);
// True if text on the stream may have colors and attributes.
bool wants_colour(std::FILE* stream);
// What the terminal supports, according to its variables; none if NO_COLOR is set.
Depth terminal_depth();

// Parameters of an escape sequence for 0xRRGGBB, or for the nearest color that the terminal has.
std::string colour_code(std::int32_t colour, bool background, Depth depth);
std::string painted(std::string_view text, std::int32_t colour);  // for stdout, if it supports colors

inline constexpr std::int32_t kSignalColour = 0xe8742e;  // a leak, out of memory
std::int32_t category_colour(std::string_view category);
// A text, or the category's own name, in the category's color.
std::string in_category(std::string_view category, std::string_view text);
inline std::string in_category(std::string_view category) { return in_category(category, category); }

}  // namespace vramscope::cli
