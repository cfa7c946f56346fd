// Regions that a pool keeps although nothing has been in them for a while.
#pragma once

#include <vector>

#include "analyze/query/state.h"

namespace vramscope::analyze {

// For each region held when the trace ends: when the last block left it. One pass over all blocks, for the index.
std::vector<RegionUse> region_use(const Store& store, unsigned threads);

// At the end of the trace, largest first; only those that contained something earlier or were never used.
std::vector<Region> empty_regions(const Engine::State& state, const Place& place);

}  // namespace vramscope::analyze
