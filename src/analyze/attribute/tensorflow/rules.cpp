#include "analyze/attribute/tensorflow/rules.h"

#include <algorithm>
#include <string_view>

#include "analyze/attribute/tensorflow/imported.h"
#include "analyze/attribute/tensorflow/op_runs.h"
#include "analyze/attribute/tensorflow/pipeline_threads.h"
#include "analyze/xla_dump.h"
#include "trace/source.h"

namespace vramscope::analyze::tensorflow {
namespace {

using trace::Category;

bool has(const BlockFacts& facts, OwnFact fact) { return (facts.own & fact) != 0; }

}  // namespace

namespace rules {

// The names of most backward ops do not say whether a parameter or an activation is differentiated.
std::optional<Meaning> imported(const BlockFacts& facts) {
  if (!has(facts, kImported)) return std::nullopt;
  if (has(facts, kStateByName)) return Meaning{Category::optimizer_state, Known::named};
  const bool result =
      facts.named == Category::activation_gradient || (facts.named == Category::temporary && has(facts, kOutlivesOp));
  if (facts.stage != Stage::backward || !result) return std::nullopt;
  if (has(facts, kWeightGradientByName)) return Meaning{Category::gradient, Known::named};
  if (has(facts, kActivationGradientByName)) return Meaning{Category::activation_gradient, Known::named};
  return Meaning{};
}

// A block of the optimizer that is alive in the next backward pass is the optimizer's state: a variable took it over.
std::optional<Meaning> kept_by_optimizer(const BlockFacts& facts) {
  if (facts.slots_reported || !facts.in_step) return std::nullopt;
  if (facts.stage != Stage::optimizer || !facts.kept_by_step) return std::nullopt;
  const bool named_temporary = facts.named == Category::temporary;
  const bool looks_temporary = facts.named == Category::unknown && facts.ends_in_training && !facts.lives_on && !facts.cut_off &&
                               !(has(facts, kUnnamed) && facts.on_device && facts.ends_in_step);
  if (!named_temporary && !looks_temporary) return std::nullopt;
  return Meaning{Category::optimizer_state, Known::inferred};
}

// Outside of graphs, some optimizers give their slots new blocks in every step. The Python side reports them in a few steps only.
std::optional<Meaning> replaced_by_optimizer(const BlockFacts& facts) {
  if (!facts.slots_reported || !has(facts, kEagerOp) || facts.stage != Stage::optimizer || !facts.kept_by_step)
    return std::nullopt;
  if (facts.named != Category::unknown && facts.named != Category::temporary) return std::nullopt;
  return Meaning{Category::optimizer_state, Known::inferred};
}

// Some kernels (Einsum, Mean) request scratch memory and return it as their result. Real scratch never outlives its op. In a step
// that was cut short, that is all there is to see.
std::optional<Meaning> result_from_scratch(const BlockFacts& facts) {
  if (facts.named != Category::temporary || facts.stage != Stage::forward || facts.unread) return std::nullopt;
  if (facts.cut_off ? !has(facts, kOutlivesOp) || !facts.has_layer : !facts.lives_on) return std::nullopt;
  return Meaning{Category::activation, Known::inferred};
}

// The same in the backward pass (Conv2DBackpropInput on a GPU), where the next op uses it. Gradients of variables are reported.
std::optional<Meaning> gradient_from_scratch(const BlockFacts& facts) {
  if (facts.named != Category::temporary || facts.stage != Stage::backward || !has(facts, kOutlivesOp)) return std::nullopt;
  return Meaning{Category::activation_gradient, Known::inferred};
}

// A tensor that Python creates from an array has no op. Outside of layers, and if nothing else was reported, it is a batch.
std::optional<Meaning> array_from_python(const BlockFacts& facts) {
  if (!has(facts, kUnnamed) || facts.on_device || !has(facts, kPythonThread)) return std::nullopt;
  if (facts.named_stage != Stage::other || facts.has_layer) return std::nullopt;
  return Meaning{Category::input, Known::inferred};
}

// On a GPU, the blocks of every op of TensorFlow itself have a name; those of an XLA executable do not. In host memory, arrays
// and the input pipeline have none either.
std::optional<Meaning> xla_executable(const BlockFacts& facts) {
  if (!has(facts, kUnnamed) || !facts.ends_in_step) return std::nullopt;
  if (!facts.on_device && (!has(facts, kXlaPlanned) || has(facts, kPythonThread) || has(facts, kPipelineThread)))
    return std::nullopt;
  return Meaning{Category::xla_temporary, Known::inferred};
}

std::optional<Meaning> input_pipeline(const BlockFacts& facts) {
  if (!has(facts, kPipelineThread)) return std::nullopt;
  return Meaning{Category::input, Known::inferred};
}

}  // namespace rules

namespace {

class TensorFlowFacts final : public OwnFacts {
 public:
  TensorFlowFacts(const Store& draft, const Columns& columns, const Scopes& scopes)
      : draft_(draft),
        scopes_(scopes),
        pipeline_(draft, columns),
        runs_(draft, columns),
        xla_planned_(std::ranges::count(draft.settings, kXlaPlans, &SettingText::key) > 0),
        imported_(std::ranges::count(draft.settings, trace::kSourceFormat, &SettingText::key) > 0) {
    if (imported_) names_.emplace(draft.dictionaries());
  }

  void of_kind(const Kind& kind, BlockFacts& facts) const override {
    // An imported profile may have no names at all, and no threads: the lack of a name says nothing of the block.
    if (!imported_ && is_unnamed(draft_, kind, facts.on_device)) facts.own |= kUnnamed;
    const std::string_view op = draft_.text(draft_.site_of(kind).op);
    if (imported_) facts.own |= by_name(kind, op);
    // A variable's handle is no value.
    if (is_eager_op(op) && op != "VarHandleOp") facts.own |= kEagerOp;
  }
  void of_block(const Kind& kind, std::uint64_t alloc, std::uint32_t thread, BlockFacts& facts) const override {
    if (runs_.outlives_op(alloc)) facts.own |= kOutlivesOp;
    if (!has(facts, kUnnamed) || facts.on_device) return;
    if (scopes_.is_python(thread)) facts.own |= kPythonThread;
    if (pipeline_.made(kind, thread)) facts.own |= kPipelineThread;
    if (xla_planned_) facts.own |= kXlaPlanned;
  }

 private:
  std::uint32_t by_name(const Kind& kind, std::string_view op) const {
    const auto stage = static_cast<Stage>(kind.stage);
    if (stage != Stage::backward && stage != Stage::optimizer) return kImported;
    const Category category = names_->category(op);
    if (stage == Stage::optimizer) return kImported | (category == Category::optimizer_state ? kStateByName : 0u);
    return kImported | (category == Category::gradient              ? kWeightGradientByName
                        : category == Category::activation_gradient ? kActivationGradientByName
                                                                    : 0u);
  }

  const Store& draft_;
  const Scopes& scopes_;
  PipelineThreads pipeline_;
  OpRuns runs_;
  bool xla_planned_, imported_;
  std::optional<ImportedNames> names_;
};

}  // namespace

std::unique_ptr<OwnFacts> own_facts(const Store& draft, const Columns& columns, const Scopes& scopes) {
  return std::make_unique<TensorFlowFacts>(draft, columns, scopes);
}

}  // namespace vramscope::analyze::tensorflow
