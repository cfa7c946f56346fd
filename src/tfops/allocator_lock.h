// The lock that a tsl::BFCAllocator takes around its own state. What the allocator knows but tells only to whoever holds it (the
// largest free chunk, which `GetStats` leaves at 0) can then be asked as TensorFlow itself asks it.
//
// Where the lock lies differs from release to release and no header tells. `GetStats` begins by taking it, and TensorFlow exports
// both functions: the address is read off that first call. Code that looks different in any detail gives "not known", never a
// guess.
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
