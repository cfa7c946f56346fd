// What a pool was asked for lately.
#pragma once

#include <vector>

#include "analyze/answers.h"
#include "analyze/state.h"

namespace vramscope::analyze {

// A request that failed although enough was free, in pieces.
struct Failure {
  Moment at = 0;
  Bytes requested = 0, free = 0, largest_piece = 0;
};
std::vector<Failure> fragmented_failures(const Engine::State& state, const Place& place);

// Largest request since the beginning of the step that holds the moment (or came last before it), at most 20,000 back. At
// the moment of a failure the request that failed for want of a large piece counts; afterwards nobody asks for it.
Bytes largest_recent_request(const Store& store, const PoolSet& pools, const std::vector<Failure>& failures, Moment at);

}  // namespace vramscope::analyze
