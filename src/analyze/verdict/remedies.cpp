#include "analyze/verdict/remedies.h"

#include <set>
#include <span>

#include "analyze/framework.h"

namespace vramscope::analyze {
namespace {

// For frameworks that have no words of their own.
constexpr Advice kForAll[] = {
    {Remedy::limit_autotuning, "Limit the workspace that the library may use to try algorithms."},
    {Remedy::return_cached_memory, "Set a limit on the pool."},
    {Remedy::return_empty_regions, "Limit the request that made the pool grow, or set a limit on the pool."},
    {Remedy::recompute_activations, "checkpointing"},
    {Remedy::keep_data_on_host, "Keep the data on the host and move each batch to the device."},
    {Remedy::avoid_fragmentation,
     "allocate the pool as one region (set a limit and turn growth off): the same run then needs less"},
    {Remedy::avoid_layout_copies, "Create the data in the layout that the ops use."},
    {Remedy::keep_a_number, "keep a number or a copy on the host, not the tensor"},
    {Remedy::lower_precision, "mixed precision"},
};

}  // namespace

trace::Framework framework_of(const Store& store, const Place& place) {
  std::set<trace::Framework> seen;
  const auto& pools = store.dictionaries().pools;
  for (std::uint32_t pool : place.pools)
    if (pool < pools.size()) seen.insert(pools[pool].framework);
  return seen.size() == 1 ? *seen.begin() : trace::Framework::none;
}

std::string_view remedy_for(Remedy remedy, trace::Framework id) {
  for (std::span<const Advice> list : {framework(id).remedies, std::span<const Advice>(kForAll)})
    for (const Advice& advice : list)
      if (advice.remedy == remedy) return advice.text;
  return {};
}

}  // namespace vramscope::analyze
