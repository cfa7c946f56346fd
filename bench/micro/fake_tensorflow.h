// The few symbols of TensorFlow 2.21 that are hooked, with the layouts that the hooks read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tsl {

struct AllocationAttributes {
  bool retry_on_failure = true;
};

struct AllocatorStats {
  std::int64_t num_allocs = 0;
  std::int64_t bytes_in_use = 0;
  std::int64_t peak_bytes_in_use = 0;
  std::int64_t largest_alloc_size = 0;
  std::int64_t bytes_limit = 0;
  bool has_limit = false;
};

// NOLINTBEGIN(readability-identifier-naming): the names are TensorFlow's.

// Hands the same blocks out again and again.
class BFCAllocator {
 public:
  void* AllocateRaw(unsigned long alignment, unsigned long bytes, const AllocationAttributes& attributes);
  void DeallocateRaw(void* block);
  std::string Name();
  unsigned long AllocatedSize(const void* block) const;
  AllocatorStats GetStats();
  int GetMemoryType() const;

  // Called through the procedure linkage table, as in TensorFlow.
  void* FindChunkPtr(int bin, unsigned long rounded, unsigned long bytes, unsigned long before);
  void MarkFree(unsigned long chunk);
  void AddTraceMe(std::string_view name, const void* block, long requested, long granted);

 private:
  static constexpr std::size_t kBlock = 256;
  static constexpr std::size_t kBlocks = 1024;
  alignas(64) std::byte memory_[kBlock * kBlocks];
  std::size_t next_ = 0;
};

namespace profiler {

struct MemoryDebugAnnotation {
  std::string_view op;
  std::int64_t step = 0;
  std::string_view region;
  std::int32_t dtype = 0;
  std::function<std::string()> shape;
};

class ScopedMemoryDebugAnnotation {
 public:
  static MemoryDebugAnnotation& ThreadMemoryDebugAnnotation();
};

// NOLINTEND(readability-identifier-naming)

}  // namespace profiler
}  // namespace tsl
