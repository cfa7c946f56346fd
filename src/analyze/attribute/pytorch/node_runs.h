// Which blocks of a backward pass are used by only one op.
//
// An op of the backward pass hands its results on, so they are alive when the next op begins. Blocks freed by then were scratch.
#pragma once

#include <vector>

#include "analyze/index/scan.h"

namespace vramscope::analyze::pytorch {

class NodeRuns {
 public:
  // Examines the blocks with an op name that were born in PyTorch's backward pass, where one op runs after the other.
  NodeRuns(const Store& draft, const Columns& columns);
  // Freed before another op of the backward pass allocated anything.
  bool ends_within(std::uint64_t alloc) const { return alloc < within_.size() && within_[alloc]; }

 private:
  std::vector<bool> within_;
};

}  // namespace vramscope::analyze::pytorch
