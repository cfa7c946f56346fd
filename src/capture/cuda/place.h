// Where a call happens: the calling thread's current context and its device.
#pragma once

#include "capture/cuda/abi.h"

namespace vramscope::capture::cuda {

// Blocks on devices beyond are recorded without their device.
inline constexpr int kMaxDevices = 64;
inline bool usable(int device) { return device >= 0 && device < kMaxDevices; }

struct Place {
  CUcontext context;
  int device;  // -1 = unknown
};

// Also records the context if it is the first one seen on its device: contexts can be created without being intercepted.
Place current_place();

// A context was created: records what the driver reports about free memory right after.
void context_created(CUcontext context, int device);
// Contexts are destroyed: cached handles are no longer valid.
void forget_places();

}  // namespace vramscope::capture::cuda
