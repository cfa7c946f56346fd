// What a pool was asked for lately.
#pragma once

#include "analyze/answers.h"
#include "analyze/grouper.h"
#include "analyze/store.h"

namespace vramscope::analyze {

// Largest request of the step that holds the moment and the step before it; without steps, of the last 20,000 allocations.
Bytes largest_recent_request(const Store& store, const PoolSet& pools, Moment at);

}  // namespace vramscope::analyze
