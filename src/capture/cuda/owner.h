// Who called the driver: the library that a return address lies in, by a short name.
#pragma once

#include <cstdint>

namespace vramscope::capture::cuda {

// String id of the owner ("NCCL", "cuBLAS", "TensorFlow", "libfoo.so", ...); 0 where the address is in no library. About 5 ns for
// an address seen before. Call only while recording.
std::uint32_t owner_of(const void* caller);

// The same for a slow call: where the caller is the shared CUDA runtime, who called that is looked for on the stack.
std::uint32_t owner_behind_runtime(const void* caller, const void* stack);

// Does this owner manage its memory in a pool of its own and try again when the driver has none? Then a refusal is not the end.
bool retries(const void* caller);

}  // namespace vramscope::capture::cuda
