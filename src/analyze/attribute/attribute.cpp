#include "analyze/attribute/attribute.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "analyze/attribute/backward.h"
#include "analyze/attribute/op_names.h"
#include "analyze/attribute/rules.h"
#include "analyze/attribute/scopes.h"
#include "analyze/attribute/tags.h"
#include "analyze/attribute/variables.h"
#include "analyze/framework.h"
#include "analyze/index/parallel.h"

namespace vramscope::analyze {
namespace {

// By training step: where it was cut short, by an out-of-memory error or by the end of the recording. Blocks that were freed
// after that were not freed because they were no longer needed.
std::vector<std::uint64_t> cut_at(const Store& draft, std::uint32_t training) {
  std::vector<std::uint64_t> out(draft.steps.size(), kNever);
  for (std::size_t s = 0; s < out.size(); ++s)
    if (draft.steps[s].open != 0 && draft.steps[s].kind == training) out[s] = draft.steps[s].end;
  for (const auto& oom : draft.ooms) {
    std::size_t s = oom.row.final ? step_of(draft.steps, oom.pos) : out.size();
    if (s < out.size() && draft.steps[s].kind == training) out[s] = std::min(out[s], oom.pos);
  }
  return out;
}

// Finds the facts that only the framework of a kind's pool needs; nothing if it needs none.
class FactsOfFrameworks {
 public:
  FactsOfFrameworks(const Store& draft, const Columns& columns, const Scopes& scopes) {
    for (const trace::Pool& pool : draft.dictionaries().pools) {
      const Framework& its = framework(pool.framework);
      if (its.own_facts != nullptr && !made_.contains(its.id)) made_[its.id] = its.own_facts(draft, columns, scopes);
      const auto found = made_.find(its.id);
      of_pool_.push_back(found != made_.end() ? found->second.get() : nullptr);
    }
  }
  const OwnFacts* of(const Kind& kind) const { return kind.pool < of_pool_.size() ? of_pool_[kind.pool] : nullptr; }

 private:
  std::map<trace::Framework, std::unique_ptr<OwnFacts>> made_;
  std::vector<const OwnFacts*> of_pool_;
};

// What blocks of one kind have in common, looked up once.
std::vector<BlockFacts> facts_of_kinds(const Store& draft, const FactsOfFrameworks& own) {
  const bool slots_reported = std::ranges::any_of(
      draft.tags, [](const Stamped<trace::Tag>& tag) { return tag.row.category == trace::Category::optimizer_state; });
  std::vector<BlockFacts> out(draft.kinds.size());
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Kind& kind = draft.kinds[k];
    if (kind.pool < draft.dictionaries().pools.size()) {
      out[k].framework = draft.dictionaries().pools[kind.pool].framework;
      out[k].on_device = draft.dictionaries().pools[kind.pool].device >= 0;
    }
    out[k].slots_reported = slots_reported;
    if (const OwnFacts* finder = own.of(kind)) finder->of_kind(kind, out[k]);
  }
  return out;
}

class Attributer {
 public:
  Attributer(const Store& draft, const Columns& columns, NameTable& names, unsigned threads)
      : draft_(draft),
        columns_(columns),
        scopes_(draft, names),
        own_(draft, columns, scopes_),
        backward_(
            draft, columns, scopes_, [this](std::uint64_t i, const Kind& kind) { return stage_of(i, kind, scope_of(i)); },
            threads),
        cut_(cut_at(draft, names.id("train"))),
        of_kind_(facts_of_kinds(draft, own_)),
        last_step_end_(draft.steps.empty() ? 0 : draft.steps.back().end),
        input_group_(names.id(kInputGroup)),
        loss_group_(names.id(kLossGroup)),
        optimizer_group_(names.id(kOptimizerGroup)) {}

  Attributes attributes_of(std::uint64_t i) const {
    const Kind& kind = draft_.kind_of(i);
    const std::uint32_t index = draft_.kind[i];
    BlockFacts facts = index < of_kind_.size() ? of_kind_[index] : BlockFacts{};
    const Scope scope = scope_of(i);
    std::uint32_t layer = kind.layer != 0 ? kind.layer : scope.layer;
    facts.has_layer = layer != 0;
    facts.named = static_cast<trace::Category>(kind.category);
    facts.unread = kind.unread != 0;
    facts.stage = facts.named_stage = stage_of(i, kind, scope);
    // Inside a layer's call an op does not belong to the input pipeline, whatever its name.
    if (static_cast<Stage>(kind.stage) == Stage::input && scope.layer != 0) {
      facts.stage = scope.stage == Stage::other ? Stage::forward : scope.stage;
      facts.named = trace::Category::unknown;
    }
    if (layer == input_group_ && framework(facts.framework).names_graph_ops) computed_for_input(facts);
    facts.freed = columns_.death[i] != kNone32;
    facts.stays = !facts.freed || columns_.death[i] >= last_step_end_;
    if (const OwnFacts* finder = own_.of(kind)) finder->of_block(kind, i, columns_.attributes[i], facts);
    if (facts.stage == Stage::backward) facts.kept_by_pass = columns_.death[i] > scopes_.backward_end(columns_.birth[i]);
    add_step_facts(i, kind, facts);
    // An evaluation runs the forward ops too, and keeps nothing for a backward pass.
    if (facts.named == trace::Category::activation && (!facts.in_step || facts.stage == Stage::evaluate))
      facts.named = trace::Category::unknown;
    const Meaning meaning = decide(facts);
    // No backward pass makes a batch: what follows it in the step does.
    if (meaning.category == trace::Category::input && facts.named_stage == Stage::other && facts.stage == Stage::backward)
      facts.stage = Stage::input;
    if (layer == 0 && meaning.category == trace::Category::input) layer = input_group_;
    if (layer == 0 && framework(facts.framework).groups_by_purpose) layer = group_of(meaning.category, facts.named_stage);
    return Attributes::of(layer, meaning.category, meaning.known, facts.stage);
  }

  std::uint32_t input_group() const { return input_group_; }

 private:
  // What the functions of an input pipeline compute is input, whatever their ops are called.
  static void computed_for_input(BlockFacts& facts) {
    facts.stage = facts.named_stage = Stage::input;
    facts.has_layer = false;
    if (facts.named == trace::Category::unknown || facts.named == trace::Category::activation)
      facts.named = trace::Category::input;
  }

  Scope scope_of(std::uint64_t i) const {
    const Timeline* timeline = scopes_.of_thread(columns_.attributes[i]);
    return timeline != nullptr ? scope_at(*timeline, columns_.birth[i]) : Scope{};
  }

  // The op's own name first, then what the process was in, then what the thread was in (a tape records the forward pass). The op
  // names of an evaluation are those of the forward pass.
  Stage stage_of(std::uint64_t i, const Kind& kind, const Scope& scope) const {
    auto stage = static_cast<Stage>(kind.stage);
    if (!scopes_.process().empty() && (stage == Stage::other || stage == Stage::forward)) {
      const Stage process = scope_at(scopes_.process(), columns_.birth[i]).stage;
      if (process == Stage::evaluate || (stage == Stage::other && process != Stage::other)) stage = process;
    }
    return stage == Stage::other ? scope.stage : stage;
  }

  void add_step_facts(std::uint64_t i, const Kind& kind, BlockFacts& facts) const {
    const auto steps = draft_.steps;
    const std::uint64_t birth = columns_.birth[i], death = columns_.death[i];
    const std::size_t s = step_of(steps, birth);
    if (s == steps.size()) return;
    facts.in_step = true;
    const std::uint64_t turn = backward_.start(s, kind, birth);
    // If the recording ends inside a step, its live blocks are treated as if the step had continued.
    const bool ends_open = !facts.freed && steps[s].end >= columns_.ref.size();
    facts.ends_in_step = ends_open || (facts.freed && death < steps[s].end);
    facts.ends_in_training = facts.ends_in_step || (facts.has_layer && facts.freed && death < last_step_end_);
    facts.lives_on = birth < turn && turn != kNever && death > turn;
    facts.cut_off = cut_[s] != kNever && birth < cut_[s] && death >= cut_[s];
    if (facts.stage == Stage::other && turn != kNever) facts.stage = birth < turn ? Stage::forward : Stage::backward;
    if (facts.stage == Stage::optimizer) {
      const std::uint64_t next = s + 1 < steps.size() ? backward_.start(s + 1, kind, steps[s + 1].begin) : steps[s].end;
      facts.kept_by_step = !facts.freed || death > next;
    }
  }

  // Blocks outside of all layers are grouped by purpose.
  std::uint32_t group_of(trace::Category category, Stage stage) const {
    if (category == trace::Category::unknown) return 0;
    return stage == Stage::optimizer ? optimizer_group_ : stage == Stage::backward ? loss_group_ : 0;
  }

  const Store& draft_;
  const Columns& columns_;
  Scopes scopes_;
  FactsOfFrameworks own_;
  BackwardPasses backward_;
  std::vector<std::uint64_t> cut_;
  std::vector<BlockFacts> of_kind_;
  std::uint64_t last_step_end_;
  std::uint32_t input_group_, loss_group_, optimizer_group_;
};

}  // namespace

Attribution attribute(const Store& draft, const Columns& columns, NameTable& names, unsigned threads) {
  const Attributer attributer(draft, columns, names, threads);
  constexpr std::size_t kPiece = 1u << 18;
  parallel(threads, (columns.birth.size() + kPiece - 1) / kPiece, [&](std::size_t piece, unsigned) {
    for (std::size_t i = piece * kPiece; i < std::min(columns.birth.size(), (piece + 1) * kPiece); ++i)
      if (columns.birth[i] != kNone32) columns.attributes[i] = attributer.attributes_of(i).bits;
  });

  Attribution out;
  const ResolvedTags tags = resolve_tags(draft);
  out.unmatched = tags.unmatched;
  for (auto [alloc, tag] : tags.blocks) {
    const Attributes old{columns.attributes[alloc]};
    std::string_view layer = draft.text(tag->row.layer);
    std::uint32_t where = layer.empty() ? old.layer() : names.id(layer);
    const bool input = tag->row.category == trace::Category::input;
    if (where == 0 && input) where = attributer.input_group();
    if (where == attributer.input_group() && !input) where = 0;  // a variable took over what was made of an array
    columns.attributes[alloc] = Attributes::of(where, tag->row.category, Known::reported, old.stage()).bits;
    out.tagged.push_back({alloc, static_cast<std::uint32_t>(tag->row.name)});
  }
  out.variable_of_kind = follow_variables(draft, columns, tags.blocks, names);
  return out;
}

}  // namespace vramscope::analyze
