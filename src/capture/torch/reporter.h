// PyTorch's allocators as the recorder knows them.
#pragma once

namespace vramscope::capture::torch {

// Records each device's own counters, as PyTorch last told them. Returns how many.
int record_stats();

}  // namespace vramscope::capture::torch
