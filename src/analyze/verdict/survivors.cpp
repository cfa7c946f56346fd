#include "analyze/verdict/survivors.h"

#include <tsl/robin_map.h>

#include <algorithm>

#include "analyze/index/lifetime.h"
#include "analyze/steps/measure.h"
#include "support/secret_hash.h"

namespace vramscope::analyze {
namespace {

// Blocks born in the window or later that may outlive the step after their own, in the order of their birth. Most blocks die
// sooner and say nothing about growth. A block that outlives the next step lives longer than the shortest step, so whole
// lifetime classes can be skipped.
std::vector<std::uint32_t> long_lived(const Store& store, const StepWindow& window, const std::vector<std::uint64_t>& step_end) {
  const std::size_t n = window.steps.size();
  const std::uint64_t begin = store.steps[window.steps.front()].begin;
  std::uint64_t shortest = ~std::uint64_t{0};
  for (std::size_t w = 1; w < n; ++w) shortest = std::min(shortest, step_end[w] - step_end[w - 1]);
  std::size_t from_class = 0;
  while (n > 3 && from_class + 1 < kClasses && (std::uint64_t{2} << from_class) <= shortest) ++from_class;
  std::vector<std::uint32_t> out;
  for (std::size_t c = from_class; c < kClasses && store.class_start.size() == kClasses + 1; ++c) {
    auto list = store.class_order.part(store.class_start[c], store.class_start[c + 1]);
    auto first = std::lower_bound(list.begin(), list.end(), begin,
                                  [&](std::uint32_t alloc, std::uint64_t pos) { return store.birth[alloc] < pos; });
    out.insert(out.end(), first, list.end());
  }
  std::ranges::sort(out);
  return out;
}

using OriginIndex = tsl::robin_map<std::uint64_t, std::size_t, support::SecretHash>;  // by origin_key()

// A buffer that is full drops an old block for each new one. Its first blocks were born before the window: what they give back is
// not kept.
void take_off_returned(const Store& store, const Grouper& grouper, const StepWindow& window,
                       const std::vector<std::uint64_t>& step_end, const OriginIndex& index, std::vector<Origin>& origins) {
  const std::uint64_t begin = store.steps[window.steps.front()].begin;
  for (std::uint32_t a = 0; a < store.allocs() && store.birth[a] < begin; ++a) {
    const std::uint64_t death = store.death[a];
    if (death < begin || death >= step_end.back() || grouper.of(a) == kOut) continue;
    const auto it = index.find(origin_key(store, a));
    if (it == index.end()) continue;
    const auto step = static_cast<std::size_t>(std::ranges::upper_bound(step_end, death) - step_end.begin());
    double& kept = origins[it->second].kept[step];
    kept = std::max(0.0, kept - static_cast<double>(grouper.bytes(a)));
  }
}

}  // namespace

StepWindow examined_steps(const Engine::State& s) {
  StepWindow out;
  if (!s.steady.has) return out;
  const std::uint32_t kind = s.store.steps[s.steady.first].kind;
  for (std::size_t i = s.steady.first; i <= s.steady.last; ++i)
    if (s.store.steps[i].kind == kind) out.steps.push_back(i);
  if (out.steps.empty()) return out;
  const StepRow& last = s.store.steps[out.steps.back()];
  if (last.open != 0 || ran_out_of_memory(s.store, last)) out.steps.pop_back();
  return out;
}

std::size_t StepWindow::of(const Store& store, std::uint64_t pos) const {
  auto it =
      std::upper_bound(steps.begin(), steps.end(), pos, [&](std::uint64_t p, std::size_t s) { return p < store.steps[s].begin; });
  return it == steps.begin() ? steps.size() : static_cast<std::size_t>(it - steps.begin()) - 1;
}

std::uint64_t origin_key(const Store& store, std::uint64_t alloc) {
  const trace::Site& site = store.site_of(store.kind_of(alloc));
  std::uint64_t key = static_cast<std::uint64_t>(site.op) * 0x9e3779b97f4a7c15ULL;
  key ^= (static_cast<std::uint64_t>(site.stack) + 1) * 0xc2b2ae3d27d4eb4fULL;
  key ^= (static_cast<std::uint64_t>(site.region) + 1) * 0x165667b19e3779f9ULL;
  return key ^ (static_cast<std::uint64_t>(store.attributes_of(alloc).layer()) + 1) * 0xd6e8feb86659fd93ULL;
}

std::vector<std::uint64_t> step_ends(const Store& store, const StepWindow& window) {
  std::vector<std::uint64_t> out;
  for (std::size_t w = 1; w < window.steps.size(); ++w) out.push_back(store.steps[window.steps[w]].begin);
  if (!window.steps.empty()) out.push_back(std::min<std::uint64_t>(store.steps[window.steps.back()].end, store.events()));
  return out;
}

std::vector<Origin> survivors(const Store& store, const Grouper& grouper, const StepWindow& window) {
  std::vector<Origin> out;
  std::size_t n = window.steps.size();
  if (n == 0) return out;
  OriginIndex index;
  std::vector<std::uint64_t> step_end = step_ends(store, window);
  std::uint64_t horizon = step_end.back();
  std::size_t w = 0;
  for (std::uint32_t a : long_lived(store, window, step_end)) {
    std::uint64_t birth = store.birth[a], death = store.death[a] >= horizon ? ~std::uint64_t{0} : store.death[a];
    while (w < n && birth >= step_end[w]) ++w;
    if (w == n) break;
    if (death < step_end[std::min(w + 1, n - 1)]) continue;
    if (grouper.of(a) == kOut) continue;
    std::uint64_t key = origin_key(store, a);
    auto [it, fresh] = index.try_emplace(key, out.size());
    if (fresh) {
      out.emplace_back();
      out.back().key = key;
      out.back().example = a;
      out.back().kept.assign(n, 0);
      out.back().level.assign(n, 0);
    }
    Origin& o = out[it->second];
    Bytes bytes = grouper.bytes(a);
    std::size_t last = n;  // last window step after which it is live
    if (death == ~std::uint64_t{0}) {
      o.kept[w] += static_cast<double>(bytes);
      o.kept_bytes += bytes;
      o.kept_blocks += 1;
      o.largest = std::max(o.largest, bytes);
      if (o.oldest.size() < Origin::kExamples) o.oldest.push_back(a);
    } else {
      last = static_cast<std::size_t>(std::upper_bound(step_end.begin(), step_end.end(), death) - step_end.begin());
      o.freed_blocks += 1;
      o.longest_freed = std::max(o.longest_freed, last - w);
    }
    // As differences; summed below.
    o.level[w] += static_cast<double>(bytes);
    if (last < n) o.level[last] -= static_cast<double>(bytes);
  }
  take_off_returned(store, grouper, window, step_end, index, out);
  for (Origin& o : out) {
    for (std::size_t i = 1; i < n; ++i) o.level[i] += o.level[i - 1];
    if (!o.oldest.empty()) o.example = o.oldest.front();
  }
  return out;
}

}  // namespace vramscope::analyze
