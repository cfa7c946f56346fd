#include "analyze/filter_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "analyze/api.h"
#include "analyze/filter.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

char low(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

constexpr std::array<std::string_view, kByCount> kByNames = {"category", "layer",  "op",    "line",  "stack", "dtype",
                                                             "shape",    "size",   "phase", "step",  "pool",  "stream",
                                                             "owner",    "region", "name",  "known", "device"};

// A number followed by a unit out of `units`.
template <std::size_t N>
std::optional<double> with_unit(std::string_view text, const std::array<std::pair<std::string_view, double>, N>& units) {
  std::string copy(text);
  char* end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || !std::isfinite(value)) return std::nullopt;
  std::string unit;
  for (const char* c = end; *c != 0; ++c)
    if (*c != ' ') unit += low(*c);
  for (auto [name, factor] : units)
    if (unit == name) return value * factor;
  return std::nullopt;
}

}  // namespace

std::span<const std::string_view> by_names() { return kByNames; }
std::vector<std::string_view> filter_by_names() { return {kByNames.begin(), kByNames.end()}; }

Result<By> by_from(std::string_view word) {
  auto it = std::ranges::find(kByNames, word);
  if (it == kByNames.end()) return fail(fmt::format("cannot group by \"{}\"; choose one of {}", word, fmt::join(kByNames, ", ")));
  return static_cast<By>(it - kByNames.begin());
}

std::vector<std::string_view> filter_fields() {
  std::vector<std::string_view> out(kByNames.begin(), kByNames.end());
  for (std::string_view extra : {"requested", "slack", "age", "born", "live@", "kind", "id"}) out.push_back(extra);
  return out;
}

std::optional<double> parse_number(std::string_view text) {
  std::string copy(text);
  char* end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != 0 || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> parse_size(std::string_view text) {
  auto bytes = support::parse_size(text);
  if (!bytes) return std::nullopt;
  return static_cast<double>(*bytes);
}

std::optional<double> parse_duration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"us", 1}, {"µs", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"h", 3600e6}}};
  return with_unit(text, kUnits);
}

bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && low(pattern[p]) == low(text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<std::vector<FilterWord>> split_filter(std::string_view text) {
  std::vector<FilterWord> out;
  std::size_t at = 0;
  // Reads a value: "quoted", /regex/ or up to a space or parenthesis.
  auto value = [&]() -> Result<std::string> {
    std::string v;
    if (at < text.size() && (text[at] == '"' || text[at] == '/')) {
      char quote = text[at];
      std::size_t start = at++;
      while (at < text.size() && text[at] != quote) at += text[at] == '\\' && at + 1 < text.size() ? 2u : 1u;
      if (at >= text.size()) return fail(fmt::format("filter: {} is not closed", text.substr(start)));
      ++at;
      return quote == '"' ? std::string(text.substr(start + 1, at - start - 2)) : std::string(text.substr(start, at - start));
    }
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) == 0 && text[at] != '(' && text[at] != ')')
      v += text[at++];
    return v;
  };
  while (at < text.size()) {
    char c = text[at];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
      continue;
    }
    FilterWord word;
    std::size_t start = at;
    if (c == '(' || c == ')') {
      word.type = c == '(' ? FilterWord::open : FilterWord::close;
      ++at;
    } else {
      std::size_t end = at;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
      std::string_view ops = end < text.size() ? text.substr(end, 1) : std::string_view();
      if (end > at && !ops.empty() && std::string_view(":=<>@").find(ops[0]) != std::string_view::npos) {
        for (std::size_t i = at; i < end; ++i) word.field += low(text[i]);
        word.op = ops;
        at = end + 1;
        if ((ops == ">" || ops == "<") && at < text.size() && text[at] == '=') word.op += text[at++];
      }
      auto v = value();
      if (!v) return std::unexpected(v.error());
      word.value = *v;
      std::string lower;
      for (char ch : *v) lower += low(ch);
      if (word.field.empty() && lower == "and") word.type = FilterWord::and_;
      if (word.field.empty() && lower == "or") word.type = FilterWord::or_;
      if (word.field.empty() && lower == "not") word.type = FilterWord::not_;
    }
    word.text = text.substr(start, at - start);
    out.push_back(std::move(word));
  }
  return out;
}

}  // namespace vramscope::analyze
