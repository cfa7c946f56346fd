#include "analyze/recent.h"

#include <algorithm>

namespace vramscope::analyze {

Bytes largest_recent_request(const Store& store, const PoolSet& pools, Moment at) {
  constexpr std::uint64_t kMost = 20'000;
  auto end = static_cast<std::uint64_t>(std::lower_bound(store.birth.begin(), store.birth.end(), at) - store.birth.begin());
  std::uint64_t from = end > kMost ? end - kMost : 0;
  // The step that holds the moment, or the last one that began before it.
  auto next = std::upper_bound(store.steps.begin(), store.steps.end(), at,
                               [](std::uint64_t p, const StepRow& s) { return p <= s.begin; });
  std::int64_t step = next - store.steps.begin() - 1;
  if (step >= 0) {
    std::uint64_t begin = store.steps[static_cast<std::size_t>(step)].begin;
    auto first =
        static_cast<std::uint64_t>(std::lower_bound(store.birth.begin(), store.birth.end(), begin) - store.birth.begin());
    from = std::max(from, first);
  }
  Bytes out = 0;
  for (std::uint64_t a = from; a < end; ++a) {
    const Kind& kind = store.kind_of(a);
    if (kind.pool < pools.size() && pools[kind.pool] != 0) out = std::max(out, kind.requested);
  }
  return out;
}

}  // namespace vramscope::analyze
