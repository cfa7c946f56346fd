#include "analyze/verdict/live_sums.h"

#include <algorithm>

#include "analyze/framework.h"
#include "analyze/index/lifetime.h"
#include "analyze/query/block_text.h"

namespace vramscope::analyze {

bool is_layout_copy(const Store& store, const Kind& kind) {
  const std::string_view ops = framework_of(store, kind).layout_copies;
  return !ops.empty() && store.text(store.site_of(kind).op).contains(ops);
}

bool is_kept_by_any_optimizer(const Store& store, std::uint64_t alloc) {
  const std::string reported = tag_name(store, alloc);
  const std::string_view slot = reported.empty() ? store.name(store.kind_of(alloc).variable) : std::string_view(reported);
  return std::ranges::any_of(frameworks(), [&](const Framework* each) {
    return std::ranges::any_of(each->state_of_any_optimizer, [&](std::string_view end) { return slot.ends_with(end); });
  });
}

LiveSums live_sums(const Store& store, const PoolSet& pools, const Float64Blocks& wide, Moment at, Bytes least_input) {
  LiveSums out;
  for_each_live(store, at, [&](std::uint32_t alloc) {
    const Kind& kind = store.kind_of(alloc);
    if (kind.pool >= pools.size() || pools[kind.pool] == 0) return;
    const trace::Category category = store.attributes_of(alloc).category();
    const Shown c = shown(category);
    out.category[static_cast<std::size_t>(c)] += kind.granted;
    if (category == trace::Category::parameter) {
      out.trained += kind.granted;
      out.values_trained += kind.requested;
    }
    if (c == Shown::optimizer_state)
      (is_kept_by_any_optimizer(store, alloc) ? out.kept_by_any : out.values_kept) += kind.requested;
    const trace::Site& site = store.site_of(kind);
    if (site.dtype != 0) out.of_known_type += kind.granted;
    if (wide.contains(alloc)) out.float64 += kind.granted;
    if (is_layout_copy(store, kind)) {
      out.layout_copies += kind.granted;
      out.layout_copy_ops = framework_of(store, kind).layout_copies;
    }
    const bool outside_steps = step_index(store, store.birth[alloc]) < 0;
    if ((c == Shown::inputs || c == Shown::constants) && outside_steps && kind.granted >= least_input && !store.steps.empty()) {
      out.kept_inputs += kind.granted;
      if (kind.line != 0) out.input_line = store.name(kind.line);
    }
  });
  return out;
}

}  // namespace vramscope::analyze
