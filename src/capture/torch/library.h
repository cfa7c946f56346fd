// PyTorch's own functions, to which the hooks forward.
#pragma once

#include <cstdint>

#include "capture/framework.h"
#include "capture/hook.h"

namespace vramscope::capture::torch {

extern const Framework kFramework;

// The start of the file names of its two libraries. The first one is loaded, and makes calls, before the second.
inline constexpr const char* kCoreFile = "libc10.so";
inline constexpr const char* kAutogradFile = "libtorch_cpu.so";

struct Library {
#define HOOK VS_HOOK_MEMBER
#include "capture/torch/hooks.inc"
#undef HOOK
  std::uint64_t (*sequence_number)();  // at::sequence_number::peek: number of the next autograd node of this thread; may be NULL
  bool (*gradients_wanted)();          // c10::GradMode::is_enabled, of this thread; may be NULL
};

// Searched for at the first call; NULL if PyTorch is not loaded. Functions that this version does not have are NULL.
const Library* library();

}  // namespace vramscope::capture::torch
