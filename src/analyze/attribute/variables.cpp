#include "analyze/attribute/variables.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analyze/framework.h"
#include "analyze/index/lifetime.h"

namespace vramscope::analyze {
namespace {

using trace::Category;

bool is_variable(Category category) {
  return category == Category::parameter || category == Category::optimizer_state || category == Category::buffer ||
         category == Category::workspace;
}

// Only an op of a graph is always the same op: in eager mode every product is called "Mul". A block without a region is a
// constant that the graph keeps and that a variable only shares.
bool is_of_graph(const Store& draft, const Kind& kind) {
  const trace::Site& site = draft.site_of(kind);
  return framework_of(draft, kind).names_graph_ops && !draft.text(site.region).empty() &&
         draft.text(site.op).find('/') != std::string_view::npos;
}

// In eager mode, an op that writes a variable makes the variable's next value if somebody still holds the old one: a tape that is
// kept. The op has the same name for all variables.
bool writes_variable(const Store& draft, const Kind& kind) {
  const std::string_view op = draft.text(draft.site_of(kind).op);
  return framework_of(draft, kind).names_graph_ops && (op == "AssignSubVariableOp" || op == "AssignAddVariableOp");
}

using ValueKey = std::pair<trace::StringId, std::uint64_t>;  // op and size

ValueKey key_of(const Store& draft, const Kind& kind) { return {draft.site_of(kind).op, kind.requested}; }

// What the blocks of one op and size are if they are kept.
struct Value {
  Category category = Category::unknown;
  std::uint32_t layer = 0, variable = 0;  // names; no variable: one of several
  bool disputed = false;                  // its blocks were reported as different things
  std::uint64_t newest = kNever;          // the block that was born last so far
};
using Values = std::map<ValueKey, Value>;

Values values_of(const Store& draft, const Columns& columns, const TaggedBlocks& tagged, NameTable& names) {
  Values out;
  for (auto [block, tag] : tagged) {
    const Kind& kind = draft.kind_of(block);
    const bool eager = writes_variable(draft, kind);
    if (!is_variable(tag->row.category) || (!eager && !is_of_graph(draft, kind))) continue;
    Value& value = out[key_of(draft, kind)];
    const std::uint32_t layer = eager ? 0 : Attributes{columns.attributes[block]}.layer();
    const std::uint32_t name = eager ? 0 : names.id(draft.text(tag->row.name));
    const bool first = value.category == Category::unknown;
    value.disputed |= !first && (value.category != tag->row.category || value.layer != layer);
    value.category = tag->row.category;
    value.layer = layer;
    value.variable = first || value.variable == name ? name : 0;
  }
  std::map<std::uint32_t, std::uint32_t> layer_of_variable;
  for (auto [block, tag] : tagged)
    if (is_variable(tag->row.category))
      layer_of_variable[names.id(draft.text(tag->row.name))] = names.id(draft.text(tag->row.layer));
  for (const Kind& kind : draft.kinds) {
    const auto category = static_cast<Category>(kind.kept_as);
    if (category == Category::unknown || !is_of_graph(draft, kind)) continue;
    Value& value = out[key_of(draft, kind)];
    if (value.category == Category::unknown) value.category = category;
    // The update of a variable runs in the optimizer; its result belongs to the layer that has the variable.
    if (const auto layer = layer_of_variable.find(kind.variable); value.layer == 0 && layer != layer_of_variable.end())
      value.layer = layer->second;
  }
  return out;
}

// A kept block takes over what its value is, unless its name already says that it is a variable's.
Attributes kept_attributes(Attributes old, const Value& value) {
  const std::uint32_t layer = value.layer != 0 ? value.layer : old.layer();
  if (old.known() == Known::named && is_variable(old.category()) && old.category() != Category::workspace)
    return Attributes::of(layer, old.category(), old.known(), old.stage());
  return Attributes::of(layer, value.category, Known::inferred, old.stage());
}

// `values`: by kind; NULL for kinds whose blocks no variable takes over.
void mark_kept_blocks(const Store& draft, const Columns& columns, const TaggedBlocks& tagged, const std::vector<Value*>& values) {
  std::size_t step = 0;  // the first one that ends after the block was born
  const auto keep = [&](std::uint64_t block, const Value& value) {
    // What outlives the next step, which writes the variable again, is an old value that something else holds.
    const bool old = step + 1 < draft.steps.size() && columns.death[block] >= draft.steps[step + 1].end;
    if (old && writes_variable(draft, draft.kind_of(block))) return;
    if (!tagged.contains(static_cast<std::uint32_t>(block)))
      columns.attributes[block] = kept_attributes({columns.attributes[block]}, value).bits;
  };
  for (std::uint64_t i = 0; i < columns.birth.size(); ++i) {
    const std::uint32_t birth = columns.birth[i], kind = draft.kind[i];
    Value* const value = birth != kNone32 && kind < values.size() ? values[kind] : nullptr;
    if (value == nullptr) continue;
    if (value->newest != kNever && columns.death[value->newest] > birth) keep(value->newest, *value);
    value->newest = i;
    while (step < draft.steps.size() && draft.steps[step].end <= birth) ++step;
    const bool in_step = step < draft.steps.size() && birth >= draft.steps[step].begin;
    if (in_step && columns.death[i] >= draft.steps[step].end) keep(i, *value);
  }
}

// Its name says little about an op that runs by itself, layer and stage of the step more.
using EagerKey = std::tuple<std::uint32_t, std::uint32_t, Stage>;

EagerKey eager_key_of(const Store& draft, const Columns& columns, std::uint64_t block) {
  const Attributes attributes{columns.attributes[block]};
  return {draft.kind[block], attributes.layer(), attributes.stage()};
}

// In eager mode, a variable takes over the block of its new value: a block that only the next step frees, as it frees one like it
// that was reported as a variable's. The moving averages of a normalization are such.
void mark_replaced_in_eager_mode(const Store& draft, const Columns& columns, const TaggedBlocks& tagged) {
  std::map<EagerKey, Category> values;  // unknown: reported as different things
  for (auto [block, tag] : tagged) {
    const Kind& kind = draft.kind_of(block);
    if (!is_variable(tag->row.category) || !framework_of(draft, kind).names_graph_ops || is_of_graph(draft, kind)) continue;
    const auto [value, first] = values.try_emplace(eager_key_of(draft, columns, block), tag->row.category);
    if (!first && value->second != tag->row.category) value->second = Category::unknown;
  }
  if (values.empty()) return;
  std::size_t step = 0;  // the first one that ends after the block was born
  for (std::uint64_t i = 0; i < columns.birth.size(); ++i) {
    const std::uint32_t birth = columns.birth[i], death = columns.death[i];
    if (birth == kNone32) continue;
    while (step < draft.steps.size() && draft.steps[step].end <= birth) ++step;
    if (step + 1 >= draft.steps.size()) return;
    if (birth < draft.steps[step].begin || death < draft.steps[step].end || death >= draft.steps[step + 1].end) continue;
    const auto value = values.find(eager_key_of(draft, columns, i));
    if (value == values.end() || value->second == Category::unknown || tagged.contains(static_cast<std::uint32_t>(i))) continue;
    const Attributes old{columns.attributes[i]};
    columns.attributes[i] = Attributes::of(old.layer(), value->second, Known::inferred, old.stage()).bits;
  }
}

const TaggedRow* tag_of(const Attribution& attribution, std::uint32_t block) {
  const auto tagged = std::ranges::lower_bound(attribution.tagged, block, {}, &TaggedRow::alloc);
  return tagged != attribution.tagged.end() && tagged->alloc == block ? &*tagged : nullptr;
}

// The live blocks of each variable, in the order of birth.
std::map<std::uint32_t, std::vector<std::uint32_t>> live_variables(const Store& draft, const Columns& columns,
                                                                   const Attribution& attribution, NameTable& names, Moment at) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> out;
  for_each_live(draft, at, [&](std::uint32_t block) {
    if (!is_variable(Attributes{columns.attributes[block]}.category())) return;
    const TaggedRow* const tagged = tag_of(attribution, block);
    const Kind& kind = draft.kind_of(block);
    if (framework_of(draft, kind).returns_new_variables) return;
    std::uint32_t variable = tagged != nullptr ? names.id(draft.text(static_cast<trace::StringId>(tagged->name)))
                                               : attribution.variable_of_kind[draft.kind[block]];
    // Written in eager mode: variables of one size in a layer look alike, but as many old values as new ones are live.
    if (writes_variable(draft, kind))
      variable =
          names.id(fmt::format("{} bytes written in layer {}", kind.requested, Attributes{columns.attributes[block]}.layer()));
    if (variable != 0) out[variable].push_back(block);
  });
  for (auto& [variable, blocks] : out) std::ranges::sort(blocks);
  return out;
}

}  // namespace

std::vector<std::uint32_t> follow_variables(const Store& draft, const Columns& columns, const TaggedBlocks& tagged,
                                            NameTable& names) {
  Values values = values_of(draft, columns, tagged, names);
  std::vector<std::uint32_t> variable_of_kind;
  std::vector<Value*> value_of_kind;
  for (const Kind& kind : draft.kinds) {
    const auto found = values.find(key_of(draft, kind));
    Value* const value = found != values.end() && !found->second.disputed ? &found->second : nullptr;
    value_of_kind.push_back(value);
    variable_of_kind.push_back(kind.variable == 0 && value != nullptr ? value->variable : kind.variable);
  }
  if (!values.empty()) mark_kept_blocks(draft, columns, tagged, value_of_kind);
  mark_replaced_in_eager_mode(draft, columns, tagged);
  return variable_of_kind;
}

bool settle_at(const Store& draft, const Columns& columns, const Attribution& attribution, NameTable& names, Moment at) {
  const auto step = std::ranges::find_if(draft.steps, [&](const StepRow& s) { return s.begin < at && at <= s.end; });
  if (step == draft.steps.end()) return false;
  bool changed = false;
  for (const auto& [variable, live] : live_variables(draft, columns, attribution, names, at)) {
    // The old value, which this step replaces.
    const auto old = std::ranges::find_if(live, [&](std::uint32_t block) { return columns.death[block] < step->end; });
    if (old == live.end()) continue;
    for (auto block = old + 1; block != live.end(); ++block) {
      if (columns.birth[*block] < step->begin || columns.death[*block] <= columns.death[*old] ||
          draft.kind_of(*block).requested != draft.kind_of(*old).requested)
        continue;
      // A block that was reported as the variable's remains the variable: that is what users see around this moment.
      const std::uint32_t other = tag_of(attribution, *block) != nullptr ? *old : *block;
      const bool gradient = static_cast<Category>(draft.kind_of(other).category) == Category::gradient;
      const Attributes then{columns.attributes[other]};
      columns.attributes[other] =
          Attributes::of(then.layer(), gradient ? Category::gradient : Category::temporary, Known::inferred, then.stage()).bits;
      changed = true;
    }
  }
  return changed;
}

}  // namespace vramscope::analyze
