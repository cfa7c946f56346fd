#include "analyze/variables.h"

#include <utility>
#include <vector>

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
  std::uint32_t layer = 0;
  bool disputed = false;  // blocks of it were told to be different things
  std::uint64_t newest = kNever;
};

}  // namespace

void follow_variables(const Store& draft, const Columns& columns, const TaggedBlocks& told) {
  std::map<std::pair<trace::StringId, std::uint64_t>, Value> values;  // by op and size
  // Only an op of a graph is one op: in eager mode every product is called "Mul".
  auto key_of = [&](const Kind& kind) { return std::pair(draft.site_of(kind).op, kind.requested); };
  auto is_of_graph = [&](const Kind& kind) { return draft.text(draft.site_of(kind).op).find('/') != std::string_view::npos; };
  for (auto [block, tag] : told) {
    if (!is_variable(tag->row.category) || !is_of_graph(draft.kind_of(block))) continue;
    Value& value = values[key_of(draft.kind_of(block))];
    const std::uint32_t layer = Note{columns.note[block]}.layer();
    value.disputed |= value.category != Category::unknown && (value.category != tag->row.category || value.layer != layer);
    value.category = tag->row.category;
    value.layer = layer;
  }
  for (const Kind& kind : draft.kinds)
    if (auto category = static_cast<Category>(kind.kept_as); category != Category::unknown && is_of_graph(kind))
      if (Value& value = values[key_of(kind)]; value.category == Category::unknown) value.category = category;
  if (values.empty()) return;

  std::vector<Value*> value_of_kind(draft.kinds.size(), nullptr);
  for (std::size_t k = 0; k < draft.kinds.size(); ++k)
    if (auto it = values.find(key_of(draft.kinds[k])); it != values.end() && !it->second.disputed) value_of_kind[k] = &it->second;
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
}

}  // namespace vramscope::analyze
