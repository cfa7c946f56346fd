#include "support/json_text.h"

#include <cstdint>

namespace vramscope::support {

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{0}; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const std::uint8_t first = byte(0);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    // Neither longer than necessary nor a surrogate.
    if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0)) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90)) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

namespace {

// Control characters of two bytes, line separators and marks that change the direction of text: valid in JSON, but a terminal
// or an editor that shows the line would act on them. 0: none of these.
unsigned obeyed(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<std::uint8_t>(character[i])); };
  const unsigned code = character.size() == 2   ? (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f)
                        : character.size() == 3 ? (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f)
                                                : 0;
  const bool turns = code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  return turns || (code >= 0x80 && code < 0xa0) ? code : 0;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      out += "\\ufffd";
    } else if (length > 1) {
      if (const unsigned code = obeyed(text.substr(0, length)); code != 0) {
        out += "\\u";
        for (const int shift : {12, 8, 4, 0}) out += kHex[code >> shift & 15];
      } else {
        out += text.substr(0, length);
      }
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<std::uint8_t>(c) < 0x20 || c == 0x7f || text.starts_with("##")) {  // "##[error]": CI systems obey it
      out += "\\u00";
      out += kHex[static_cast<std::uint8_t>(c) >> 4];
      out += kHex[c & 15];
    } else {
      out += c;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

}  // namespace vramscope::support
