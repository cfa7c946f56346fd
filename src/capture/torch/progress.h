// Where the training loop is: phases of the process, steps.
#pragma once

#include "capture/stacks/stacks.h"

namespace vramscope::capture::torch {

// The phase in which the calling thread allocates right now, after what its stack says. Marks phases and steps of the process as
// they are entered.
stacks::Phase follow(const stacks::Snapshot& stack, bool inside_backward);

}  // namespace vramscope::capture::torch
