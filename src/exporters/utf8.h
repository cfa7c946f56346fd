// Names of a trace may be any bytes; readers of most formats reject a whole file for one text that is not UTF-8.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "support/json_text.h"

namespace vramscope::exporters {

// Nearly all names are ASCII.
inline bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// Appends `text` with U+FFFD in place of each byte that is not part of a valid character.
inline void append_utf8(std::string& out, std::string_view text) {
  if (is_ascii(text)) {
    out += text;
    return;
  }
  while (!text.empty()) {
    const std::size_t length = support::utf8_length(text);
    out += length > 0 ? text.substr(0, length) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
}

inline std::string as_utf8(std::string_view text) {
  std::string out;
  append_utf8(out, text);
  return out;
}

}  // namespace vramscope::exporters
