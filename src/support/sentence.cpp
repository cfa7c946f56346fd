#include "support/sentence.h"

#include <algorithm>

namespace vramscope::support {

std::string capitalized(std::string_view text) {
  std::string out(text);
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

std::string as_sentence(std::string_view text) {
  const std::size_t word = std::min(text.find(' '), text.size());
  const bool is_name = text.substr(0, word).find_first_of("_/.=:") != std::string_view::npos;
  std::string out = is_name ? std::string(text) : capitalized(text);
  if (!out.empty() && std::string_view(".?!").find(out.back()) == std::string_view::npos) out += ".";
  return out;
}

}  // namespace vramscope::support
