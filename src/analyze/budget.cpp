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

// Position of a character outside quotes, or the end.
std::size_t find_outside_quotes(std::string_view line, std::string_view wanted) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote == 0 && wanted.find(line[i]) != std::string_view::npos) return i;
    if (quote == 0 && (line[i] == '"' || line[i] == '\''))
      quote = line[i];
    else if (line[i] == quote)
      quote = 0;
  }
  return line.size();
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
  auto open_table = [&](std::string_view name) -> Status {
    table = unquoted(trimmed(name));
    if (table == "category" || table == "layer" || table == "baseline") return {};
    return fail(fmt::format("budget line {}: there is no table \"{}\"; there are category, layer and baseline", number, table));
  };
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view whole = text.substr(at, end - at);
    at = end + 1;
    ++number;
    bool indented = !whole.empty() && (whole.front() == ' ' || whole.front() == '\t');
    std::string_view line = trimmed(whole.substr(0, find_outside_quotes(whole, "#")));
    if (line.empty() || line == "---") continue;
    if (line.front() == '[') {
      if (line.back() != ']') return fail(fmt::format("budget line {}: a table is written [name]", number));
      if (auto ok = open_table(line.substr(1, line.size() - 2)); !ok) return std::unexpected(ok.error());
      continue;
    }
    std::size_t sign = find_outside_quotes(line, "=:");
    if (sign == line.size()) return fail(fmt::format("budget line {}: expected key = value or key: value", number));
    std::string_view value = trimmed(line.substr(sign + 1));
    if (line[sign] == ':') {
      if (!indented) table.clear();
      if (value.empty()) {
        if (auto ok = open_table(line.substr(0, sign)); !ok) return std::unexpected(ok.error());
        continue;
      }
    }
    BudgetRule rule;
    rule.line = number;
    rule.table = table;
    rule.key = unquoted(trimmed(line.substr(0, sign)));
    rule.value = unquoted(value);
    if (rule.key.empty() || rule.value.empty()) return fail(fmt::format("budget line {}: key or value is missing", number));
    auto same = [&](const BudgetRule& r) { return r.table == rule.table && r.key == rule.key; };
    if (auto first = std::ranges::find_if(out, same); first != out.end())
      return fail(
          fmt::format("budget line {}: {} has a limit on line {} already; keep one of them", number, rule.key, first->line));
    out.push_back(std::move(rule));
  }
  return out;
}

}  // namespace vramscope::analyze
