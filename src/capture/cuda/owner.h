// What called the driver: the library that contains a return address, by a short name.
#pragma once

#include <cstdint>

namespace vramscope::capture::cuda {

// String id of the owner ("NCCL", "cuBLAS", "TensorFlow", "libfoo.so", ...); 0 if the address is in no library. Takes about 5
// ns for a known address. Call only while recording.
std::uint32_t owner_of(const void* caller);

// The same for a slow call: if the caller is the shared CUDA runtime, its caller is searched on the stack.
std::uint32_t owner_behind_runtime(const void* caller, const void* stack);

// Whether this owner has a pool of its own and retries when the driver has no memory. Then a refusal is not final.
bool retries(const void* caller);

}  // namespace vramscope::capture::cuda
