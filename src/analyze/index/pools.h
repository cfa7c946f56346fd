// What pools hold from the level below: regions over time, limits, and whether their order is exact.
#pragma once

#include <map>
#include <vector>

#include "analyze/answers.h"
#include "analyze/index/store.h"

namespace vramscope::analyze {

// A region as it is at some moment.
struct HeldRegion {
  std::uint32_t pool = 0;
  std::uint64_t address = 0;
  Bytes bytes = 0;
  Moment taken = 0;
  std::uint64_t taken_us = 0;
};

// Regions of the place's pools at a moment, in the order in which they were allocated.
std::vector<HeldRegion> regions_at(const Store& store, const Place& place, Moment at);

// Bytes of a place's regions from a moment on.
struct RegionLevel {
  Moment from = 0;
  Bytes bytes = 0;
};
using RegionLevels = std::vector<RegionLevel>;  // by moment
RegionLevels region_levels(const Store& store, const Place& place);
Bytes level_at(const RegionLevels& levels, Moment at);

// Fills regions_peak, regions_end, limit and order_exact of a place from region, stats and totals events.
void measure_pools(const Store& store, Place& place);

}  // namespace vramscope::analyze
