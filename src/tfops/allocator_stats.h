// A TensorFlow allocator's own counters, read from outside: no header, no compiler on the user's machine.
//
// The C API offers no statistics, but TensorFlow exports the C++ symbols. `GetStats` and `ClearStats` are virtual functions of
// tsl::Allocator. Their position in a vtable is found by searching BFCAllocator's vtable for its own versions, and is the same
// for every allocator (the CPU's, cuda_malloc_async, ...).
#pragma once

#include <cstdint>

#include "vramscope/tensorflow.h"

namespace vramscope::tfops {

struct KernelContext;

// The allocator of the memory in which kernels on this device compute. NULL if it cannot be reached.
void* device_allocator(KernelContext* context);

enum class Answer { ok, none_kept, unreachable };

// none_kept: the allocator keeps no statistics (the CPU's, unless it is a BFC). Takes the allocator's lock for a moment.
Answer read_stats(void* allocator, vramscope_tf_stats& out);
// The largest chunk that a BFC allocator could hand out without growing; VRAMSCOPE_TF_UNKNOWN for any other. Takes the
// allocator's lock for a moment. Only one thread may call it at a time.
std::uint64_t largest_free_bytes(void* allocator);
// Peak = current, counts = 0: what tf.config.experimental.reset_memory_stats does.
Answer clear_stats(void* allocator);

}  // namespace vramscope::tfops
