// Records PyTorch's allocators.
#pragma once

namespace vramscope::capture::torch {

// Records the counters of each device as PyTorch last reported them. Returns the number of devices.
int record_counters();

}  // namespace vramscope::capture::torch
