#include "analyze/attribute/backward.h"

#include <algorithm>

#include "analyze/framework.h"
#include "analyze/index/parallel.h"

namespace vramscope::analyze {
namespace {

// How many more forward ops than backward ops have run, and whether the next backward op is the first after the largest lead.
struct Lead {
  std::int64_t now = 0, best = 0;
  bool behind_best = true;

  // True if this op is the best guess so far for the start of the backward pass.
  bool count(Stage stage) {
    if (stage == Stage::forward && ++now > best) {
      best = now;
      behind_best = true;
    }
    if (stage != Stage::backward) return false;
    --now;
    const bool turns = behind_best;
    behind_best = false;
    return turns;
  }
};

}  // namespace

std::size_t step_of(std::span<const StepRow> steps, std::uint64_t pos) {
  auto it = std::upper_bound(steps.begin(), steps.end(), pos, [](std::uint64_t p, const StepRow& s) { return p < s.begin; });
  if (it == steps.begin() || pos >= (it - 1)->end) return steps.size();
  return static_cast<std::size_t>(it - 1 - steps.begin());
}

// A backward pass does not start with its first op: the parts of a gradient that depend only on the forward pass are computed as
// soon as they can be. It starts where the forward ops lie before it and the backward ops after it, as far as the order allows.
BackwardPasses::BackwardPasses(const Store& draft, const Columns& columns, const Scopes& scopes, const StageOf& stage_of,
                               unsigned threads)
    : draft_(draft), slots_(draft), turns_(draft.steps.size() * slots_.count(), kNever), passes_(scopes.backward_passes()) {
  const auto steps = draft.steps;
  parallel(threads, steps.size(), [&](std::size_t s, unsigned) {
    std::vector<Lead> leads(slots_.count());
    for (std::uint64_t pos = steps[s].begin; pos < std::min<std::uint64_t>(steps[s].end, columns.ref.size()); ++pos) {
      const std::uint32_t ref = columns.ref[pos];
      if (ref == kNone32 || (ref & 1) != 0) continue;
      const Kind& kind = draft.kind_of(ref >> 1);
      const Stage stage = stage_of(ref >> 1, kind);
      std::uint64_t* turns = &turns_[s * slots_.count()];
      if (leads[0].count(stage)) turns[0] = pos;
      if (const std::size_t slot = slots_.of(kind); slot > 0 && leads[slot].count(stage)) turns[slot] = pos;
    }
  });
}

// Some frameworks report the start of each backward pass, and a step may have several: gradients are accumulated, or two networks
// take turns. A block belongs to the next one, or to the last one if none follows.
std::uint64_t BackwardPasses::start(std::size_t s, const Kind& kind, std::uint64_t birth) const {
  if (!passes_.empty() && framework_of(draft_, kind).reports_backward) {
    auto next = std::ranges::upper_bound(passes_, birth);
    if (next != passes_.end() && *next < draft_.steps[s].end) return *next;
    if (next != passes_.begin() && *(next - 1) >= draft_.steps[s].begin) return *(next - 1);
  }
  const std::uint64_t own = turns_[s * slots_.count() + slots_.of(kind)];
  return own != kNever ? own : turns_[s * slots_.count()];
}

}  // namespace vramscope::analyze
