// What phases needed: their peaks, what they allocated, and what they left behind.
#pragma once

#include <span>

#include "analyze/query/state.h"

namespace vramscope::analyze {

// So many are measured one by one, each with a look at the blocks that are live at its end.
inline constexpr std::size_t kFewPhases = 64;

// Fills peak, peak_at, allocated, allocs and growth_kept. Takes time for the blocks that are live at the ends of a few phases, or
// for one walk over the events if there are more.
void measure_phases(const Store& store, const View& view, std::span<Phase> phases);

// The same in one walk, however many there are.
void sweep_phases(const Store& store, const Grouper& grouper, std::span<Phase> phases);

// Fills host_peak.
void measure_host(const Store& store, std::span<Phase> phases);

}  // namespace vramscope::analyze
