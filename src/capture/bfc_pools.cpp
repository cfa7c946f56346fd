#include "capture/bfc_pools.h"

#include <string.h>

#include "capture/python/startup.h"

namespace vramscope::capture {

namespace {

// The start of tsl::AllocatorStats, which has not changed since TensorFlow 2.5. The object is larger, so it is returned into a
// larger buffer.
struct StatsPrefix {
  std::int64_t allocs;
  std::int64_t in_use;
  std::int64_t peak;
  std::int64_t largest;
  std::int64_t limit;
  bool has_limit;
};

StatsPrefix ask_stats(const BfcQueries& queries, void* allocator) {
  alignas(16) char buffer[1024] = {};
  StatsPrefix stats{};
  if (queries.get_stats == nullptr) return stats;
  queries.get_stats(buffer, allocator);
  memcpy(&stats, buffer, sizeof stats);
  return stats;
}

// tsl::AllocatorMemoryType: unknown, device, pageable host, pinned host.
record::Memory memory_of(const BfcQueries& queries, void* allocator, bool on_device) {
  const int type = queries.memory_type != nullptr ? queries.memory_type(allocator) : 0;
  if (type == 3) return record::Memory::pinned;
  if (type == 2) return record::Memory::host;
  return on_device ? record::Memory::device : record::Memory::host;
}

// "GPU_0_bfc" and XLA's "GPU_collectivememory_0_bfc" belong to GPU 0 of the process. Pools without a number in their name are
// host pools.
std::int32_t device_of(const char* name) {
  if (strncmp(name, "GPU_", 4) != 0) return -1;
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  const char* digit = name + 4;
  while (*digit != '\0' && !is_digit(*digit)) ++digit;
  if (*digit == '\0') return -1;
  std::int32_t device = 0;
  for (; is_digit(*digit) && device < 1000; ++digit) device = device * 10 + (*digit - '0');
  return device;
}

}  // namespace

void BfcPools::remember(void* allocator) {
  for (auto& place : allocators_) {
    void* there = nullptr;
    if (place.compare_exchange_strong(there, allocator) || there == allocator) return;
  }
}

__attribute__((noinline, cold)) std::uint8_t BfcPools::make(const BfcQueries& queries, void* allocator,
                                                            const Framework& framework, std::uint32_t flags) {
  char name[64] = "bfc";
  if (queries.name != nullptr) {
    ReturnedString returned{};
    queries.name(&returned, allocator);
    const std::size_t bytes = returned.size < sizeof name ? returned.size : sizeof name - 1;
    memcpy(name, returned.data, bytes);
    name[bytes] = '\0';
    if (returned.data != returned.local && queries.release != nullptr) queries.release(returned.data);
  }
  const StatsPrefix stats = ask_stats(queries, allocator);
  const std::int32_t device = device_of(name);
  record::PoolKey key{reinterpret_cast<std::uint64_t>(allocator), name,         device, record::Level::tensor,
                      memory_of(queries, allocator, device >= 0), framework.id, flags};
  if (stats.has_limit && stats.limit > 0) key.limit_bytes = static_cast<std::uint64_t>(stats.limit);
  if (stats.in_use > 0) {
    key.before_bytes = static_cast<std::uint64_t>(stats.in_use);
    key.flags |= spool::kPoolSeenLate;
  }
  const std::uint8_t pool = record::pool(key);
  if (pool != record::kNoPool) {
    remember(allocator);
    python::framework_seen(framework);
  }
  return pool;
}

void BfcPools::forget(void* allocator) {
  for (auto& place : allocators_) {
    void* there = allocator;
    place.compare_exchange_strong(there, nullptr);
  }
  const std::uint8_t pool = record::find_pool(reinterpret_cast<std::uint64_t>(allocator));
  if (spool::Pool* totals = record::pool_totals(pool)) totals->key.store(~std::uint64_t{0}, std::memory_order_relaxed);
}

int BfcPools::record_counters(const BfcQueries& queries) {
  int answered = 0;
  for (auto& place : allocators_) {
    void* allocator = place.load(std::memory_order_acquire);
    if (allocator == nullptr) continue;
    const StatsPrefix stats = ask_stats(queries, allocator);
    if (stats.allocs <= 0 && stats.in_use <= 0) continue;
    spool::StatsRecord counters{};
    counters.allocs = static_cast<std::uint64_t>(stats.allocs);
    counters.in_use = static_cast<std::uint64_t>(stats.in_use);
    counters.peak = static_cast<std::uint64_t>(stats.peak);
    counters.largest = static_cast<std::uint64_t>(stats.largest);
    counters.limit = stats.has_limit ? static_cast<std::uint64_t>(stats.limit) : 0;
    record::stats(record::find_pool(reinterpret_cast<std::uint64_t>(allocator)), counters);
    ++answered;
  }
  return answered;
}

}  // namespace vramscope::capture
