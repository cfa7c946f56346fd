// The budget file of `vramscope check`: a subset of TOML (tables, and keys with a number, a size or a text), or the same as YAML
// (`key: value`, one level of indented tables).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace vramscope::analyze {

struct BudgetRule {
  std::uint64_t line = 0;
  std::string table;  // "", category, layer, baseline
  std::string key;
  std::string value;  // without quotes
};
Result<std::vector<BudgetRule>> parse_budget(std::string_view text);

}  // namespace vramscope::analyze
