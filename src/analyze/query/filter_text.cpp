#include "analyze/query/filter_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "analyze/api.h"
#include "analyze/gen/texts.h"
#include "analyze/query/filter.h"
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
  if (it == kByNames.end())
    return fail(fmt::format("cannot group by \"{}\": expected one of {}", word, fmt::join(kByNames, ", ")));
  return static_cast<By>(it - kByNames.begin());
}

std::vector<std::string_view> filter_fields() {
  std::vector<std::string_view> out(kByNames.begin(), kByNames.end());
  for (std::string_view extra : {"requested", "slack", "age", "born", "live@", "kind", "id"}) out.push_back(extra);
  return out;
}

std::string filter_word(std::string_view category) {
  std::string word(category);
  std::ranges::replace(word, ' ', '_');
  return word;
}

std::string filter_term(std::string_view field, std::string_view text) {
  constexpr std::string_view kEndsWord = " \t\r\n\f\v()\"";
  std::string out = fmt::format("{}:", field);
  if (!text.empty() && text.front() != '/' && text.find_first_of(kEndsWord) == std::string_view::npos) return out.append(text);
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
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

namespace {

class FilterSplitter {
 public:
  explicit FilterSplitter(std::string_view text) : text_(text) {}

  Result<std::vector<FilterWord>> split() {
    std::vector<FilterWord> out;
    for (skip_spaces(); at_ < text_.size(); skip_spaces()) {
      const std::size_t start = at_;
      auto word = next_word();
      if (!word) return std::unexpected(word.error());
      word->text = text_.substr(start, at_ - start);
      out.push_back(std::move(*word));
    }
    return out;
  }

 private:
  static bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  Result<FilterWord> next_word() {
    FilterWord word;
    if (text_[at_] == '(' || text_[at_] == ')') {
      word.type = text_[at_++] == '(' ? FilterWord::open : FilterWord::close;
      return word;
    }
    read_field(word);
    auto value = read_value();
    if (!value) return std::unexpected(value.error());
    word.value = std::move(*value);
    if (word.field.empty()) word.type = type_of(word.value);
    return word;
  }

  // "size>=": nothing for a bare word.
  void read_field(FilterWord& word) {
    std::size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_')) ++end;
    if (end == at_ || end == text_.size() || std::string_view(":=<>@").find(text_[end]) == std::string_view::npos) return;
    word.field = lower(text_.substr(at_, end - at_));
    word.op = text_[end];
    at_ = end + 1;
    if ((word.op == ">" || word.op == "<") && at_ < text_.size() && text_[at_] == '=') word.op += text_[at_++];
  }

  // "quoted", /regex/ or up to a space or parenthesis.
  Result<std::string> read_value() {
    const std::size_t start = at_;
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '/')) {
      const char quote = text_[at_++];
      while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2u : 1u;
      if (at_ >= text_.size()) return fail(filter_lacks_quote(text_.substr(start)));
      ++at_;
      return quote == '"' ? unescaped(text_.substr(start + 1, at_ - start - 2)) : std::string(text_.substr(start, at_ - start));
    }
    while (at_ < text_.size() && !is_space(text_[at_]) && text_[at_] != '(' && text_[at_] != ')') ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  // As filter_term() writes it. Backslashes before anything else stay.
  static std::string unescaped(std::string_view quoted) {
    std::string out;
    for (std::size_t i = 0; i < quoted.size(); ++i) {
      const bool escape = quoted[i] == '\\' && i + 1 < quoted.size() && (quoted[i + 1] == '"' || quoted[i + 1] == '\\');
      out += quoted[escape ? ++i : i];
    }
    return out;
  }

  static FilterWord::Type type_of(std::string_view bare_word) {
    const std::string word = lower(bare_word);
    if (word == "and") return FilterWord::and_;
    if (word == "or") return FilterWord::or_;
    return word == "not" ? FilterWord::not_ : FilterWord::term;
  }

  static std::string lower(std::string_view text) {
    std::string out;
    for (char c : text) out += low(c);
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<FilterWord>> split_filter(std::string_view text) { return FilterSplitter(text).split(); }

}  // namespace vramscope::analyze
