// Allocators of the class tsl::BFCAllocator as pools: TensorFlow and XLA's plugins for JAX each have a copy of the class.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/framework.h"
#include "record/recorder.h"

namespace vramscope::capture {

// The 32 bytes of a std::string in libstdc++'s layout, as it is returned by a function.
struct ReturnedString {
  char* data;
  std::size_t size;
  char local[16];
};

// What an allocator says about itself. All may be NULL.
struct BfcQueries {
  ReturnedString* (*name)(ReturnedString* out, void* allocator);
  void* (*get_stats)(void* out, void* allocator);
  int (*memory_type)(const void* allocator);
  void (*release)(void* heap);  // operator delete, for the strings that are returned
};

class BfcPools {
 public:
  // Creates the pool of an allocator. Asks it for its name and limit: never call this inside the allocator's lock.
  std::uint8_t make(const BfcQueries& queries, void* allocator, const Framework& framework, std::uint32_t flags);
  // The allocator is being destroyed, and another one may get its address.
  void forget(void* allocator);
  // Records the counters of every existing allocator. Returns how many have any.
  int record_counters(const BfcQueries& queries);

 private:
  void remember(void* allocator);

  std::atomic<void*> allocators_[spool::kMaxPools]{};
};

}  // namespace vramscope::capture
