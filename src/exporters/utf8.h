// Names of a trace may be any bytes; readers of Parquet, Arrow and pickles reject texts that are not UTF-8.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "support/json_text.h"

namespace vramscope::exporters {

// Appends `text` with U+FFFD in place of each byte that is not part of a valid character.
inline void append_utf8(std::string& out, std::string_view text) {
  // Nearly all names are ASCII.
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
    out += text;
    return;
  }
  while (!text.empty()) {
    const std::size_t length = support::utf8_length(text);
    out += length > 0 ? text.substr(0, length) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
}

}  // namespace vramscope::exporters
