#include "analyze/verdict/recent_requests.h"

#include <algorithm>

#include "analyze/verdict/oom_scene.h"

namespace vramscope::analyze {

std::vector<Failure> fragmented_failures(const Engine::State& s, const Place& place) {
  std::vector<Failure> out;
  std::size_t examined = 0;
  for (const auto& o : s.store.ooms) {
    if (!o.row.final) continue;
    auto where = failed_pool(s, o.row);
    if (!where || std::ranges::find(place.pools, where->pool) == place.pools.end()) continue;
    if (++examined > kMostFailures) break;
    OomScene scene = scene_of(s, *where, o);
    if (scene.fragmented()) out.push_back({o.pos, o.time_us, scene.requested, scene.free(), scene.largest_piece()});
  }
  return out;
}

Bytes largest_recent_request(const Store& store, const PoolSet& pools, const std::vector<Failure>& failures, Moment at) {
  constexpr std::uint64_t kMost = 20'000;
  auto end = static_cast<std::uint64_t>(std::lower_bound(store.birth.begin(), store.birth.end(), at) - store.birth.begin());
  std::uint64_t from = end > kMost ? end - kMost : 0;
  // The step that contains the moment, or the last one that started before it.
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
  for (const Failure& f : failures)
    if (f.at == at) out = std::max(out, f.requested);
  return out;
}

}  // namespace vramscope::analyze
