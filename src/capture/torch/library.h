// PyTorch's own functions behind the hooks.
#pragma once

#include <cstdint>

namespace vramscope::capture::torch {

struct Library {
#define HOOK(name, library, result, symbol, parameters, arguments) result(*name) parameters;
#include "capture/torch/hooks.inc"
#undef HOOK
  std::uint64_t (*sequence_number)();  // at::sequence_number::peek: number of the next autograd node of this thread; may be NULL
  bool (*gradients_wanted)();          // c10::GradMode::is_enabled, of this thread; may be NULL
};

// Found at the first call; NULL while PyTorch is not loaded. Members that this version does not have are NULL.
const Library* library();

// Redirects PyTorch in a process where it is already loaded. Returns the number of places, 0 = nothing will be seen, -1 = no
// PyTorch.
int attach_late();

}  // namespace vramscope::capture::torch
