// Scratch that a library asks for while it tries algorithms.
#pragma once

#include "analyze/answers.h"
#include "analyze/grouper.h"
#include "analyze/store.h"

namespace vramscope::analyze {

// A workspace or a temporary.
bool is_scratch(const Store& store, std::uint64_t alloc);
// Bytes of it that are live at a moment.
Bytes autotune_share(const Store& store, const PoolSet& pools, Moment at);
// Those at the peak of a place with steady steps, where they are what lifts it above them; else 0. On the host no library tries
// algorithms.
Bytes autotuning_at_peak(const Store& store, const PoolSet& pools, const Place& place);

}  // namespace vramscope::analyze
