// The lock that a tsl::BFCAllocator takes around its own state. Some of its functions require that the caller holds it, such as
// the one for the largest free chunk, which `GetStats` reports as 0.
//
// The position of the lock differs between releases, and no header declares it. `GetStats` starts by taking it, and TensorFlow
// exports both functions, so the address is taken from that first call. If the code differs in any detail, the result is "not
// known", never a guess.
#pragma once

#include <cstddef>

namespace vramscope::tfops {

struct AllocatorLock {
  std::size_t offset = 0;  // in the allocator
  void (*lock)(void*) = nullptr;
  void (*unlock)(void*) = nullptr;

  bool known() const { return lock != nullptr && unlock != nullptr; }
};

// `get_stats`: the address of tsl::BFCAllocator::GetStats.
AllocatorLock find_allocator_lock(const void* get_stats);

}  // namespace vramscope::tfops
