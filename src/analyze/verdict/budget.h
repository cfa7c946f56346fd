// The budget file of `vramscope check`: TOML, with a limit for each key and the tables category, layer and baseline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace vramscope::analyze {

inline constexpr std::size_t kMostBudgetBytes = 256 * 1024;

struct BudgetRule {
  std::uint64_t line = 0;
  std::string table;  // "", category, layer, baseline
  std::string key;
  std::string value;  // a number as text, or the text
};
// In the order of the file, which has at most kMostBudgetBytes.
Result<std::vector<BudgetRule>> parse_budget(std::string_view text);

}  // namespace vramscope::analyze
