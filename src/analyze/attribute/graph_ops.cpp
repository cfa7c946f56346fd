#include "analyze/attribute/graph_ops.h"

#include <algorithm>
#include <array>
#include <variant>

#include "analyze/attribute/op_names.h"

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

GraphOps::GraphOps(std::span<const trace::Report> reports, const trace::Dictionaries& dictionaries)
    : dictionaries_(dictionaries) {
  for (const trace::OpSource& source : dictionaries.op_sources) {
    const std::string_view layer = text(source.layer), scope = scope_of(text(source.op));
    if (layer == kInputGroup) continue;
    // Each traced function has an op that reads the next batch, by the same name. Its line is that of the first call: the loop
    // that trains, not the evaluation that follows.
    if (layer.empty())
      sources_.try_emplace(text(source.op), &source);
    else
      sources_[text(source.op)] = &source;
    if (!layer.empty() && !scope.empty()) scopes_.try_emplace(scope, layer);
  }
  // The functions of an input pipeline have graphs of their own. A name that the model's graphs have too says nothing.
  for (const trace::OpSource& source : dictionaries.op_sources)
    if (text(source.layer) == kInputGroup) sources_.try_emplace(text(source.op), &source);
  for (const trace::Report& report : reports) {
    if (const auto* constant = std::get_if<trace::BakedConstant>(&report)) add(*constant);
    if (const auto* op = std::get_if<trace::VariableOp>(&report)) add(*op);
  }
}

void GraphOps::add(const trace::BakedConstant& constant) {
  results_.try_emplace(text(constant.op), Reported{trace::Category::constant, {}});
}

void GraphOps::add(const trace::VariableOp& op) {
  switch (op.role) {
    case trace::OpRole::gradient:
      results_[text(op.op)] = {trace::Category::gradient, {}};
      return;
    case trace::OpRole::storage:
      results_[text(op.op)] = {op.category, text(op.variable)};
      return;
    case trace::OpRole::saved:
      saved_ops_reported_ = true;
      results_.try_emplace(text(op.op), Reported{trace::Category::activation, {}});
      return;
    case trace::OpRole::value:
      kept_values_[text(op.op)] = {op.category, text(op.variable)};
      return;
  }
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
      if (auto it = sources_.find(name); it != sources_.end()) return text(it->second->layer);
      if (auto it = scopes_.find(name); it != scopes_.end()) return it->second;
    }
  return std::nullopt;
}

GraphOps::Reported GraphOps::find(const ReportedOps& ops, std::string_view op) {
  if (ops.empty()) return {};
  for (std::string_view name : names_in_graphs(op))
    if (auto it = ops.find(name); it != ops.end()) return it->second;
  return {};
}

trace::Category GraphOps::result_category(std::string_view op) const { return find(results_, op).category; }
bool GraphOps::unread(std::string_view op) const {
  return saved_ops_reported_ && result_category(op) == trace::Category::unknown && source(op) != nullptr;
}

trace::Category GraphOps::kept_category(std::string_view op) const { return find(kept_values_, op).category; }

std::string_view GraphOps::variable(std::string_view op) const {
  const std::string_view written = find(results_, op).variable;
  return !written.empty() ? written : find(kept_values_, op).variable;
}

}  // namespace vramscope::analyze
