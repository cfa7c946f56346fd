// Follows the training loop: phases and steps of the process.
#pragma once

#include "capture/stacks/stacks.h"
#include "capture/torch/library.h"

namespace vramscope::capture::torch {

struct Progress {
  stacks::Phase phase = stacks::Phase::none;
  bool loop_computes = false;  // the training loop itself computes, outside all layers: a loss or a metric
};

// The phase of the calling thread, which is allocating, according to its stack. Records marks for phases and steps of the process
// as they start and end.
Progress follow(const Library& real, const stacks::Snapshot& stack, bool inside_backward);

}  // namespace vramscope::capture::torch
