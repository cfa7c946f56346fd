#include "analyze/graph_ops.h"

#include <algorithm>
#include <array>

namespace vramscope::analyze {
namespace {

// "_119": the number of a branch or of a loop's body.
bool is_number(std::string_view part) {
  return part.size() > 1 && part.front() == '_' && part.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

bool is_branch(std::string_view part) {
  constexpr std::array<std::string_view, 4> kBranches = {"body", "cond", "then", "else"};
  return std::ranges::find(kBranches, part) != kBranches.end() || part.starts_with("branch");
}

std::string_view scope_of(std::string_view name) {
  std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

trace::Category category_from(std::string_view value) {
  if (value.starts_with("parameter ")) return trace::Category::parameter;
  if (value.starts_with("optimizer_state ")) return trace::Category::optimizer_state;
  return value.starts_with("workspace ") ? trace::Category::workspace : trace::Category::buffer;
}

}  // namespace

std::vector<std::string_view> names_in_graphs(std::string_view op) {
  std::vector<std::string_view> out{op};
  std::string_view before;
  for (std::size_t at = 0, slash; (slash = op.find('/', at)) != std::string_view::npos; at = slash + 1) {
    std::string_view part = op.substr(at, slash - at);
    const bool called = part.starts_with("StatefulPartitionedCall") || part.starts_with("PartitionedCall");
    if (called || (is_number(part) && is_branch(before))) out.push_back(op.substr(slash + 1));
    before = part;
  }
  std::ranges::reverse(out);
  return out;
}

GraphOps::GraphOps(const std::vector<Stamped<trace::Setting>>& settings, const trace::Dictionaries& words) : words_(words) {
  for (const trace::OpSource& source : words.op_sources) {
    sources_[word(source.op)] = &source;
    if (std::string_view layer = word(source.layer), scope = scope_of(word(source.op)); !layer.empty() && !scope.empty())
      scopes_.try_emplace(scope, layer);
  }
  constexpr std::string_view kGradient = "gradient_op.", kVariable = "variable_op.", kValue = "variable_value.";
  for (const auto& setting : settings) {
    std::string_view key = word(setting.row.key), value = word(setting.row.value);
    const Told told{category_from(value), value.substr(std::min(value.size(), value.find(' ') + 1))};
    if (key.starts_with(kGradient)) made_[key.substr(kGradient.size())] = {trace::Category::gradient, {}};
    if (key.starts_with(kVariable)) made_[key.substr(kVariable.size())] = told;
    if (key.starts_with(kValue)) values_[key.substr(kValue.size())] = told;
  }
}

std::string_view GraphOps::word(trace::StringId id) const {
  auto i = static_cast<std::size_t>(id);
  return i < words_.strings.size() ? std::string_view(words_.strings[i]) : std::string_view();
}

const trace::OpSource* GraphOps::source(std::string_view op) const {
  if (sources_.empty()) return nullptr;
  for (std::string_view name : names_in_graphs(op))
    if (auto it = sources_.find(name); it != sources_.end()) return it->second;
  return nullptr;
}

std::optional<std::string_view> GraphOps::layer(std::string_view op) const {
  if (sources_.empty()) return std::nullopt;
  for (std::string_view name : names_in_graphs(op))
    for (; !name.empty(); name = scope_of(name)) {
      if (auto it = sources_.find(name); it != sources_.end()) return word(it->second->layer);
      if (auto it = scopes_.find(name); it != scopes_.end()) return it->second;
    }
  return std::nullopt;
}

GraphOps::Told GraphOps::find(const Ops& told, std::string_view op) {
  if (told.empty()) return {};
  for (std::string_view name : names_in_graphs(op))
    if (auto it = told.find(name); it != told.end()) return it->second;
  return {};
}

trace::Category GraphOps::category(std::string_view op) const { return find(made_, op).category; }
trace::Category GraphOps::value_of(std::string_view op) const { return find(values_, op).category; }

std::string_view GraphOps::variable(std::string_view op) const {
  std::string_view written = find(made_, op).variable;
  return !written.empty() ? written : find(values_, op).variable;
}

}  // namespace vramscope::analyze
