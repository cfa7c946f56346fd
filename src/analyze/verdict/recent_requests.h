// The recent requests to a pool.
#pragma once

#include <vector>

#include "analyze/answers.h"
#include "analyze/query/state.h"

namespace vramscope::analyze {

// A request that failed although enough was free, in pieces.
struct Failure {
  Moment at = 0;
  std::uint64_t time_us = 0;  // of the failure itself, which is not an event
  Bytes requested = 0, free = 0, largest_piece = 0;
};
// Holes cost something only while blocks are in the way: an empty pool is free in one piece per region.
inline bool is_nearly_empty(Bytes live, Bytes regions) { return live * 10 < regions; }

std::vector<Failure> fragmented_failures(const Engine::State& state, const Place& place);

// The largest request since the start of the step that contains the moment (or the last one before it), at most 20,000 back. At
// the moment of a failure, the request that failed for lack of a large piece counts; afterwards it is no longer pending.
Bytes largest_recent_request(const Store& store, const PoolSet& pools, const std::vector<Failure>& failures, Moment at);

}  // namespace vramscope::analyze
