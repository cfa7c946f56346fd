#include "cli/top/keys.h"

#include <algorithm>
#include <bit>

namespace vramscope::cli::top {

namespace {

constexpr char kEscape = '\x1b';

// ESC [ parameters letter, or ESC O letter. Anything else after ESC is a separate key.
std::size_t sequence_length(std::string_view bytes) {
  if (bytes.size() < 2 || (bytes[1] != '[' && bytes[1] != 'O')) return 1;
  if (bytes[1] == 'O') return std::min<std::size_t>(3, bytes.size());
  const auto end = std::find_if(bytes.begin() + 2, bytes.end(), [](char c) { return c >= '@' && c <= '~'; });
  return std::min<std::size_t>(static_cast<std::size_t>(end - bytes.begin()) + 1, bytes.size());
}

std::size_t character_length(std::string_view bytes) {
  const int leading = std::countl_one(static_cast<unsigned char>(bytes[0]));
  return std::min<std::size_t>(leading >= 2 && leading <= 4 ? static_cast<std::size_t>(leading) : 1, bytes.size());
}

std::string name_of(std::string_view key) {
  if (key == "\x1b") return "escape";
  if (key == "\x1b[A" || key == "\x1bOA") return "up";
  if (key == "\x1b[B" || key == "\x1bOB") return "down";
  if (key[0] == kEscape) return {};
  if (key == "\r" || key == "\n") return "enter";
  if (key == "\x7f" || key == "\b") return "backspace";
  return std::string(key);
}

}  // namespace

std::vector<std::string> keys_in(std::string_view bytes) {
  std::vector<std::string> keys;
  while (!bytes.empty()) {
    const std::size_t length = bytes[0] == kEscape ? sequence_length(bytes) : character_length(bytes);
    if (std::string name = name_of(bytes.substr(0, length)); !name.empty()) keys.push_back(std::move(name));
    bytes.remove_prefix(length);
  }
  return keys;
}

}  // namespace vramscope::cli::top
