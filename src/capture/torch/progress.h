// Where the training loop is: phases of the process, steps.
#pragma once

#include "capture/stacks/stacks.h"
#include "capture/torch/library.h"

namespace vramscope::capture::torch {

struct Progress {
  stacks::Phase phase = stacks::Phase::none;
  bool loop_computes = false;  // the training loop itself computes, outside of all layers: a loss, a metric
};

// Where the calling thread is when it allocates, after what its stack says. Marks phases and steps of the process as they are
// entered.
Progress follow(const Library& real, const stacks::Snapshot& stack, bool inside_backward);

}  // namespace vramscope::capture::torch
