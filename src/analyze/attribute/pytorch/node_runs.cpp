#include "analyze/attribute/pytorch/node_runs.h"

#include <algorithm>

namespace vramscope::analyze::pytorch {
namespace {

bool of_pytorch(const Store& draft, const Kind& kind) {
  const auto& pools = draft.dictionaries().pools;
  return kind.pool < pools.size() && pools[kind.pool].framework == trace::Framework::pytorch;
}

}  // namespace

NodeRuns::NodeRuns(const Store& draft, const Columns& columns) {
  std::vector<bool> backward(draft.kinds.size());
  for (std::size_t k = 0; k < draft.kinds.size(); ++k)
    backward[k] = of_pytorch(draft, draft.kinds[k]) && static_cast<Stage>(draft.kinds[k].stage) == Stage::backward;
  if (std::ranges::find(backward, true) == backward.end()) return;
  within_.resize(columns.birth.size());
  trace::StringId op{};
  std::uint64_t began = 0;  // the start of this op's run
  for (std::uint64_t pos = 0; pos < columns.ref.size(); ++pos) {
    const std::uint32_t ref = columns.ref[pos];
    if (ref == kNone32) continue;
    const std::uint32_t alloc = ref >> 1, kind = draft.kind[alloc];
    if (kind >= backward.size() || !backward[kind]) continue;
    if ((ref & 1) != 0) {
      within_[alloc] = columns.birth[alloc] >= began;
    } else if (const trace::StringId now = draft.site_of(draft.kinds[kind]).op; now != op) {
      op = now;
      began = pos;
    }
  }
}

}  // namespace vramscope::analyze::pytorch
