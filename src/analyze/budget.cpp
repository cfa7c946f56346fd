#include "analyze/budget.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace vramscope::analyze {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

// A # outside quotes begins a comment.
std::string_view without_comment(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == '#' && !quoted) return line.substr(0, i);
  }
  return line;
}

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

Result<std::vector<BudgetRule>> parse_budget(std::string_view text) {
  std::vector<BudgetRule> out;
  std::string table;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = trimmed(without_comment(text.substr(at, end - at)));
    at = end + 1;
    ++number;
    if (line.empty()) continue;
    if (line.front() == '[') {
      if (line.back() != ']') return fail(fmt::format("budget line {}: a table is written [name]", number));
      table = trimmed(line.substr(1, line.size() - 2));
      if (table != "category" && table != "layer" && table != "baseline")
        return fail(fmt::format("budget line {}: there is no table [{}]; use [category], [layer] or [baseline]", number, table));
      continue;
    }
    std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return fail(fmt::format("budget line {}: expected key = value", number));
    BudgetRule rule;
    rule.line = number;
    rule.table = table;
    rule.key = unquoted(trimmed(line.substr(0, equals)));
    rule.value = unquoted(trimmed(line.substr(equals + 1)));
    if (rule.key.empty() || rule.value.empty()) return fail(fmt::format("budget line {}: key or value is missing", number));
    out.push_back(std::move(rule));
  }
  return out;
}

}  // namespace vramscope::analyze
