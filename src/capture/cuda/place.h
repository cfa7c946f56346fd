// Where a call happens: the calling thread's current context and its device.
#pragma once

#include "capture/cuda/abi.h"

namespace vramscope::capture::cuda {

struct Place {
  CUcontext context;
  int device;  // -1 = unknown
};

// Also records the context when it is the first seen on its device: contexts can come into being behind our back.
Place current_place();

// A context came into being: records what the driver says about free memory right after.
void context_created(CUcontext context, int device);
// Contexts go: what was learnt about handles no longer holds.
void forget_places();

}  // namespace vramscope::capture::cuda
