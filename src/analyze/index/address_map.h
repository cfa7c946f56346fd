// Where blocks and holes are in the regions of a pool at a moment.
#pragma once

#include <utility>
#include <vector>

#include "analyze/answers.h"
#include "analyze/index/pools.h"
#include "analyze/index/store.h"
#include "analyze/query/grouper.h"

namespace vramscope::analyze {

struct Layout {
  std::vector<HeldRegion> regions;                              // in the order in which they were allocated
  std::vector<Bytes> live, largest_hole;                        // by region
  std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks;  // allocation, region; by address
  std::vector<Hole> holes;                                      // by address
  Bytes free = 0, outside = 0;
};
Layout layout_at(const Store& store, const Place& place, const PoolSet& pools, Moment at);

// Live allocations of the pools, by address.
std::vector<std::uint32_t> live_by_address(const Store& store, const PoolSet& pools, Moment at);

}  // namespace vramscope::analyze
