// The figures of each pool: from the events or, if events are missing, from the recorder's own totals. This is the only place
// that chooses between the two, so a peak is the same wherever it is shown.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/answers.h"
#include "analyze/index/store.h"

namespace vramscope::analyze {

struct PoolFigures {
  std::vector<PoolSummary> pools;     // by pool
  std::vector<std::uint8_t> counted;  // by pool: 1 = the recorder's totals replace missing events
  std::uint64_t lost_events = 0;      // recorded but not in the trace, except those left out on purpose
};

PoolFigures pool_figures(const Store& store);

// Device memory of the driver level, over all pools.
DriverSummary driver_figures(const Store& store, const PoolFigures& figures);

// Whether there is anything to show.
bool is_used(const PoolSummary& pool);

// Corrects the measured figures of a place by the figures of its pools.
void settle(Place& place, const PoolFigures& figures);

}  // namespace vramscope::analyze
