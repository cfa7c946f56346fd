// Text, line by line, and the numbers in it.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace vramscope::importers {

// Calls f(line) for each line, without its line break.
template <typename F>
void each_line(std::string_view text, F&& f) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    f(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

inline std::optional<std::uint64_t> number_in(std::string_view text, int base = 10) {
  std::uint64_t value = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (done.ec != std::errc() || done.ptr == text.data()) return {};
  return value;
}

// What follows `words` in the line, if they are there.
inline std::optional<std::string_view> after(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  return at == std::string_view::npos ? std::nullopt : std::optional(line.substr(at + words.size()));
}

}  // namespace vramscope::importers
