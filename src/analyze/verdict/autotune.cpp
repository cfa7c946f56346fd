#include "analyze/verdict/autotune.h"

#include <algorithm>

#include "analyze/index/lifetime.h"

namespace vramscope::analyze {

bool is_scratch(std::string_view op, Shown category, const Framework& framework) {
  if (category == Shown::workspace) return true;
  return category == Shown::temporaries &&
         std::ranges::any_of(framework.ops_with_scratch, [&](std::string_view word) { return op.contains(word); });
}

bool is_scratch(const Store& store, std::uint64_t alloc) {
  const Kind& kind = store.kind_of(alloc);
  return is_scratch(store.text(store.site_of(kind).op), shown(store.attributes_of(alloc).category()), framework_of(store, kind));
}

Bytes autotune_share(const Store& store, const PoolSet& pools, Moment at) {
  Bytes sum = 0;
  for_each_live(store, at, [&](std::uint32_t alloc) {
    const Kind& kind = store.kind_of(alloc);
    if (is_scratch(store, alloc) && kind.pool < pools.size() && pools[kind.pool] != 0) sum += kind.granted;
  });
  return sum;
}

Bytes autotuning(const Store& store, const PoolSet& pools, const Place& place, Bytes above) {
  if (place.device < 0) return 0;
  const Bytes scratch = autotune_share(store, pools, place.peak_at);
  return scratch * 3 > above ? scratch : 0;
}

}  // namespace vramscope::analyze
