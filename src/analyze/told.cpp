#include "analyze/told.h"

#include <cstdlib>
#include <map>

#include <fmt/format.h>

namespace vramscope::analyze {

// Our own Python side wrote it: one level, strings and numbers.
std::string ToldFact::text(std::string_view member) const {
  std::size_t at = json.find(fmt::format("\"{}\":", member));
  if (at == std::string::npos) return {};
  at = json.find_first_not_of(' ', at + member.size() + 3);
  if (at == std::string::npos) return {};
  if (json[at] != '"') return json.substr(at, json.find_first_of(",}", at) - at);
  std::string out;
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\' && at + 1 < json.size()) ++at;
    out += json[at];
  }
  return out;
}

std::uint64_t ToldFact::number(std::string_view member) const { return std::strtoull(text(member).c_str(), nullptr, 10); }

std::string ToldFact::line() const {
  std::string file = text("file");
  return fmt::format("{}:{}", file.substr(file.rfind('/') == std::string::npos ? 0 : file.rfind('/') + 1), text("line"));
}

std::vector<ToldFact> told_facts(const Store& store, std::string_view kind) {
  std::string prefix = fmt::format("fact.{}.", kind);
  std::map<std::string_view, std::string_view> newest;
  for (const auto& row : store.settings)
    if (std::string_view key = store.text(row.row.key); key.starts_with(prefix)) newest[key] = store.text(row.row.value);
  std::vector<ToldFact> out;
  for (const auto& [key, value] : newest) out.push_back({std::string(value)});
  return out;
}

}  // namespace vramscope::analyze
