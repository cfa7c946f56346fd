#include "tfops/allocator_stats.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#include "tfops/allocator_lock.h"
#include "tfops/tf_api.h"

namespace vramscope::tfops {
namespace {

// tsl::AllocatorAttributes: passed in one register.
struct AllocatorAttributes {
  std::uint32_t value;
  std::int32_t scope_id;
};

// std::optional<std::int64_t> as laid out by libstdc++.
struct OptionalInt {
  std::int64_t value;
  bool engaged;
};

// tsl::AllocatorStats, the fields that every release from 2.15 to 2.21 has at these offsets.
struct AllocatorStats {
  std::int64_t num_allocs;
  std::int64_t bytes_in_use;
  std::int64_t peak_bytes_in_use;
  std::int64_t largest_alloc_size;
  OptionalInt bytes_limit;
  std::int64_t bytes_reserved;
  std::int64_t peak_bytes_reserved;
  OptionalInt bytes_reservable_limit;
  std::int64_t largest_free_block_bytes;
  OptionalInt pool_bytes;
  OptionalInt peak_pool_bytes;
};

// Room for std::optional<AllocatorStats> of a release with more fields. An empty optional leaves the value bytes untouched, and
// no counter is ever this negative, so the pattern distinguishes the two without knowing where the flag is.
union StatsBuffer {
  AllocatorStats stats;
  unsigned char bytes[512];
};
constexpr std::int64_t kUntouched = -0x5A5A5A5A5A5A5A5B;

using GetAllocator = void* (*)(KernelContext*, AllocatorAttributes);
using GetStats = void (*)(StatsBuffer* result, void* allocator);
using ClearStats = bool (*)(void* allocator);

using LargestFreeChunk = std::int64_t (*)(void* allocator);

constexpr const char* kGetStats = "_ZN3tsl12BFCAllocator8GetStatsEv";
constexpr std::size_t kNoSlot = 0;
constexpr std::size_t kVtableSlots = 32;

// Slot of `function` in tsl::BFCAllocator's vtable, counted from the address in an object's vtable pointer.
std::size_t slot_of(const char* function) {
  void* framework = framework_handle();
  if (framework == nullptr) return kNoSlot;
  void* const target = dlsym(framework, function);
  void* const vtable = dlsym(framework, "_ZTVN3tsl12BFCAllocatorE");
  if (target == nullptr || vtable == nullptr) return kNoSlot;
  void* const* entries = static_cast<void* const*>(vtable) + 2;  // after the offset to top and the type
  for (std::size_t slot = 2; slot < kVtableSlots; ++slot)        // the first two are destructors
    if (entries[slot] == target) return slot;
  return kNoSlot;
}

std::size_t stats_slot() {
  static const std::size_t slot = slot_of(kGetStats);
  return slot;
}

void* entry(void* allocator, std::size_t slot) { return (*static_cast<void***>(allocator))[slot]; }

std::uint64_t unsigned_or_zero(const OptionalInt& value) {
  return value.engaged && value.value > 0 ? static_cast<std::uint64_t>(value.value) : 0;
}

}  // namespace

void* device_allocator(KernelContext* context) {
  static GetAllocator get = nullptr;
  if (get == nullptr && framework_handle() != nullptr)
    get = reinterpret_cast<GetAllocator>(
        dlsym(framework_handle(), "_ZN10tensorflow15OpKernelContext13get_allocatorEN3tsl19AllocatorAttributesE"));
  return get == nullptr ? nullptr : get(context, AllocatorAttributes{0, 0});
}

Answer read_stats(void* allocator, vramscope_tf_stats& out) {
  const std::size_t slot = stats_slot();
  if (allocator == nullptr || slot == kNoSlot) return Answer::unreachable;
  StatsBuffer buffer;
  buffer.stats = {};
  buffer.stats.bytes_in_use = kUntouched;
  reinterpret_cast<GetStats>(entry(allocator, slot))(&buffer, allocator);
  const AllocatorStats& stats = buffer.stats;
  if (stats.bytes_in_use == kUntouched) return Answer::none_kept;
  out.allocs = static_cast<std::uint64_t>(stats.num_allocs);
  out.current_bytes = static_cast<std::uint64_t>(stats.bytes_in_use);
  out.peak_bytes = static_cast<std::uint64_t>(stats.peak_bytes_in_use);
  out.largest_bytes = static_cast<std::uint64_t>(stats.largest_alloc_size);
  out.limit_bytes = unsigned_or_zero(stats.bytes_limit);
  out.pool_bytes = unsigned_or_zero(stats.pool_bytes);
  out.largest_free_bytes =
      stats.largest_free_block_bytes > 0 ? static_cast<std::uint64_t>(stats.largest_free_block_bytes) : VRAMSCOPE_TF_UNKNOWN;
  return Answer::ok;
}

std::uint64_t largest_free_bytes(void* allocator) {
  const std::size_t slot = stats_slot();
  if (allocator == nullptr || slot == kNoSlot) return VRAMSCOPE_TF_UNKNOWN;
  static void* const get_stats = dlsym(framework_handle(), kGetStats);
  static const auto largest =
      reinterpret_cast<LargestFreeChunk>(dlsym(framework_handle(), "_ZN3tsl12BFCAllocator16LargestFreeChunkEv"));
  static const AllocatorLock guard = find_allocator_lock(get_stats);
  // Only for a BFC allocator: another class has another GetStats.
  if (largest == nullptr || !guard.known() || entry(allocator, slot) != get_stats) return VRAMSCOPE_TF_UNKNOWN;
  void* const lock = static_cast<char*>(allocator) + guard.offset;
  guard.lock(lock);
  const std::int64_t bytes = largest(allocator);
  guard.unlock(lock);
  return bytes >= 0 ? static_cast<std::uint64_t>(bytes) : VRAMSCOPE_TF_UNKNOWN;
}

Answer clear_stats(void* allocator) {
  static const std::size_t slot = slot_of("_ZN3tsl12BFCAllocator10ClearStatsEv");
  if (allocator == nullptr || slot == kNoSlot) return Answer::unreachable;
  return reinterpret_cast<ClearStats>(entry(allocator, slot))(allocator) ? Answer::ok : Answer::none_kept;
}

}  // namespace vramscope::tfops
