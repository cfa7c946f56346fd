#include "analyze/attribute/pytorch/rules.h"

#include <tsl/robin_set.h>

#include "analyze/attribute/pytorch/node_runs.h"
#include "analyze/attribute/tags.h"

namespace vramscope::analyze::pytorch {
namespace rules {

// PyTorch allocates a workspace for cuBLAS from its own pool at the first matrix product of a layer, and keeps it.
std::optional<Meaning> blas_workspace(const BlockFacts& facts) {
  if ((facts.own & kSizeOfWorkspace) == 0 || !facts.stays || !facts.has_layer) return std::nullopt;
  return Meaning{trace::Category::workspace, Known::inferred};
}

// Scratch memory of one op of the backward pass.
std::optional<Meaning> scratch_of_node(const BlockFacts& facts) {
  if (facts.named != trace::Category::unknown || facts.named_stage != Stage::backward) return std::nullopt;
  if ((facts.own & kWithinNode) == 0 || facts.kept_by_pass) return std::nullopt;
  return Meaning{trace::Category::temporary, Known::inferred};
}

// The batch of the first call is reported. In a loop without an optimizer nothing marks where the update of the parameters ends
// and the next batch begins, but the same line makes it.
std::optional<Meaning> batch_of_loop(const BlockFacts& facts) {
  if ((facts.own & kForNextPass) == 0 || facts.named_stage != Stage::other) return std::nullopt;
  return Meaning{trace::Category::input, Known::inferred};
}

// Blocks that are created while a data loader runs are the next batch.
std::optional<Meaning> batch(const BlockFacts& facts) {
  if (facts.stage != Stage::input) return std::nullopt;
  return Meaning{trace::Category::input, Known::inferred};
}

}  // namespace rules

namespace {

class PytorchFacts final : public OwnFacts {
 public:
  PytorchFacts(const Store& draft, const Columns& columns, const Scopes& scopes)
      : draft_(draft), columns_(columns), scopes_(scopes), runs_(draft, columns) {
    for (const std::uint32_t block : tagged_as(draft, trace::Category::input))
      if (const std::uint32_t line = draft.kind_of(block).line; line != 0) batch_lines_.insert(line);
  }

  // The size of the workspace depends only on the card: CUBLAS_WORKSPACE_CONFIG is :4096:2:16:8 by default, :4096:8 from Hopper
  // on.
  void of_kind(const Kind& kind, BlockFacts& facts) const override {
    const auto& pools = draft_.dictionaries().pools;
    if (kind.pool < pools.size() && pools[kind.pool].memory == trace::Memory::device &&
        (kind.granted == 8'519'680 || kind.granted == 33'554'432))
      facts.own |= kSizeOfWorkspace;
  }
  void of_block(const Kind& kind, std::uint64_t alloc, std::uint32_t /*thread*/, BlockFacts& facts) const override {
    if (runs_.ends_within(alloc)) facts.own |= kWithinNode;
    if (!batch_lines_.contains(kind.line)) return;
    const Scope* next = scopes_.process_after(columns_.birth[alloc]);
    if (next != nullptr && next->stage == Stage::forward && columns_.death[alloc] > next->pos) facts.own |= kForNextPass;
  }

 private:
  const Store& draft_;
  const Columns& columns_;
  const Scopes& scopes_;
  tsl::robin_set<std::uint32_t> batch_lines_;
  NodeRuns runs_;
};

}  // namespace

std::unique_ptr<OwnFacts> own_facts(const Store& draft, const Columns& columns, const Scopes& scopes) {
  return std::make_unique<PytorchFacts>(draft, columns, scopes);
}

}  // namespace vramscope::analyze::pytorch
