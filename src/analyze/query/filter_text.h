// The tokens of the filter language, before they are interpreted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/answers.h"
#include "support/result.h"

namespace vramscope::analyze {

struct FilterWord {
  enum Type { term, and_, or_, not_, open, close } type = term;
  std::string text;              // as written
  std::string field, op, value;  // term: op is one of : = > < >= <= @; empty field = a bare word
};

Result<std::vector<FilterWord>> split_filter(std::string_view text);

// Matches the whole text, ignoring case; * matches anything.
bool glob(std::string_view pattern, std::string_view text);
std::optional<double> parse_number(std::string_view text);
std::vector<std::string_view> filter_by_names();  // index = By
// The term that matches this text in this field: layer:conv2d_1, layer:"my layer".
std::string filter_term(std::string_view field, std::string_view text);
// A category's name as one word of a filter: "optimizer_state".
std::string filter_word(std::string_view category);

}  // namespace vramscope::analyze
