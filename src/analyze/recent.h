// What a pool was asked for lately.
#pragma once

#include "analyze/answers.h"
#include "analyze/grouper.h"
#include "analyze/store.h"

namespace vramscope::analyze {

// Largest request since the beginning of the step that holds the moment (or came last before it), at most 20,000 back.
Bytes largest_recent_request(const Store& store, const PoolSet& pools, Moment at);

}  // namespace vramscope::analyze
