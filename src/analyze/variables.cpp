#include "analyze/variables.h"

#include <algorithm>
#include <utility>

#include "analyze/lifetime.h"

namespace vramscope::analyze {
namespace {

using trace::Category;

bool is_variable(Category category) {
  return category == Category::parameter || category == Category::optimizer_state || category == Category::buffer ||
         category == Category::workspace;
}

// What the blocks of one op and size are where they are kept.
struct Value {
  Category category = Category::unknown;
  std::uint32_t layer = 0, variable = 0;  // names; no variable: one of several
  bool disputed = false;                  // blocks of it were told to be different things
  std::uint64_t newest = kNever;
};

}  // namespace

std::vector<std::uint32_t> follow_variables(const Store& draft, const Columns& columns, const TaggedBlocks& told,
                                            NameTable& names) {
  std::vector<std::uint32_t> variable_of_kind;
  variable_of_kind.reserve(draft.kinds.size());
  for (const Kind& kind : draft.kinds) variable_of_kind.push_back(kind.variable);
  std::map<std::pair<trace::StringId, std::uint64_t>, Value> values;  // by op and size
  auto key_of = [&](const Kind& kind) { return std::pair(draft.site_of(kind).op, kind.requested); };
  // Only an op of a graph is one op: in eager mode every product is called "Mul". What no region is told of is a constant that
  // the graph keeps, and that a variable only shares.
  auto is_of_graph = [&](const Kind& kind) {
    const auto& pools = draft.words().pools;
    return kind.pool < pools.size() && pools[kind.pool].framework == trace::Framework::tensorflow &&
           !draft.text(draft.site_of(kind).region).empty() &&
           draft.text(draft.site_of(kind).op).find('/') != std::string_view::npos;
  };
  for (auto [block, tag] : told) {
    if (!is_variable(tag->row.category) || !is_of_graph(draft.kind_of(block))) continue;
    Value& value = values[key_of(draft.kind_of(block))];
    const std::uint32_t layer = Note{columns.note[block]}.layer(), name = names.id(draft.text(tag->row.name));
    const bool first = value.category == Category::unknown;
    value.disputed |= !first && (value.category != tag->row.category || value.layer != layer);
    value.category = tag->row.category;
    value.layer = layer;
    value.variable = first || value.variable == name ? name : 0;
  }
  for (const Kind& kind : draft.kinds)
    if (auto category = static_cast<Category>(kind.kept_as); category != Category::unknown && is_of_graph(kind))
      if (Value& value = values[key_of(kind)]; value.category == Category::unknown) value.category = category;
  if (values.empty()) return variable_of_kind;

  std::vector<Value*> value_of_kind(draft.kinds.size(), nullptr);
  for (std::size_t k = 0; k < draft.kinds.size(); ++k)
    if (auto it = values.find(key_of(draft.kinds[k])); it != values.end() && !it->second.disputed) {
      value_of_kind[k] = &it->second;
      if (variable_of_kind[k] == 0) variable_of_kind[k] = it->second.variable;
    }
  auto kept = [&](std::uint64_t block, const Value& value) {
    if (told.contains(static_cast<std::uint32_t>(block))) return;
    Note old{columns.note[block]};
    if (old.known() == Known::named && is_variable(old.category()) && old.category() != Category::workspace) return;
    columns.note[block] =
        Note::of(value.layer != 0 ? value.layer : old.layer(), value.category, Known::inferred, old.stage()).bits;
  };
  std::size_t step = 0;  // of the block
  for (std::uint64_t i = 0; i < columns.birth.size(); ++i) {
    Value* value = columns.birth[i] != kNone32 && draft.kind[i] < value_of_kind.size() ? value_of_kind[draft.kind[i]] : nullptr;
    if (value == nullptr) continue;
    if (value->newest != kNever && columns.death[value->newest] > columns.birth[i]) kept(value->newest, *value);
    value->newest = i;
    while (step < draft.steps.size() && draft.steps[step].end <= columns.birth[i]) ++step;
    const bool in_step = step < draft.steps.size() && columns.birth[i] >= draft.steps[step].begin;
    if (in_step && columns.death[i] >= draft.steps[step].end) kept(i, *value);
  }
  return variable_of_kind;
}

bool settle_at(const Store& draft, const Columns& columns, const Attribution& attribution, NameTable& names, Moment at) {
  const auto step = std::ranges::find_if(draft.steps, [&](const StepRow& s) { return s.begin < at && at <= s.end; });
  if (step == draft.steps.end()) return false;
  std::map<std::uint32_t, std::vector<std::uint32_t>> blocks;  // by variable, in the order of birth
  for_each_live(draft, at, [&](std::uint32_t block) {
    if (!is_variable(Note{columns.note[block]}.category())) return;
    auto tagged = std::ranges::lower_bound(attribution.tagged, block, {}, &TaggedRow::alloc);
    const bool told = tagged != attribution.tagged.end() && tagged->alloc == block;
    const std::uint32_t variable =
        told ? names.id(draft.text(static_cast<trace::StringId>(tagged->name))) : attribution.variable_of_kind[draft.kind[block]];
    if (variable != 0) blocks[variable].push_back(block);
  });
  bool changed = false;
  for (auto& [variable, live] : blocks) {
    std::ranges::sort(live);
    // The old value, which this step replaces.
    auto old = std::ranges::find_if(live, [&](std::uint32_t b) { return columns.death[b] < step->end; });
    if (old == live.end()) continue;
    for (auto block = old + 1; block != live.end(); ++block) {
      const Kind& kind = draft.kind_of(*block);
      if (columns.birth[*block] < step->begin || columns.death[*block] <= columns.death[*old] ||
          kind.requested != draft.kind_of(*old).requested)
        continue;
      const bool gradient = static_cast<Category>(kind.category) == Category::gradient;
      const Note note{columns.note[*block]};
      columns.note[*block] =
          Note::of(note.layer(), gradient ? Category::gradient : Category::temporary, Known::inferred, note.stage()).bits;
      changed = true;
    }
  }
  return changed;
}

}  // namespace vramscope::analyze
