#include "capture/tensorflow/pools.h"

#include <string.h>

#include <atomic>

#include "record/recorder.h"

namespace vramscope::capture::tensorflow {

namespace {

constexpr std::size_t kAllocators = spool::kMaxPools;
std::atomic<void*> g_allocators[kAllocators];
std::atomic<bool> g_frees_tell_sizes;

// The part of tsl::AllocatorStats that has stood still since 2.5. The object is larger; it is returned into a generous buffer.
struct StatsPrefix {
  std::int64_t allocs;
  std::int64_t in_use;
  std::int64_t peak;
  std::int64_t largest;
  std::int64_t limit;
  bool has_limit;
};

StatsPrefix ask_stats(const Library& real, void* allocator) {
  alignas(16) char buffer[1024] = {};
  StatsPrefix stats{};
  if (real.get_stats == nullptr) return stats;
  real.get_stats(buffer, allocator);
  memcpy(&stats, buffer, sizeof stats);
  return stats;
}

// tsl::AllocatorMemoryType: unknown, device, pageable host, pinned host.
record::Memory memory_of(const Library& real, void* allocator, bool on_device) {
  const int type = real.memory_type != nullptr ? real.memory_type(allocator) : 0;
  if (type == 3) return record::Memory::pinned;
  if (type == 2) return record::Memory::host;
  return on_device ? record::Memory::device : record::Memory::host;
}

// "GPU_0_bfc" is TensorFlow's GPU 0; names without a number are host pools.
std::int32_t device_of(const char* name) {
  if (strncmp(name, "GPU_", 4) != 0 || name[4] < '0' || name[4] > '9') return -1;
  std::int32_t device = 0;
  for (const char* digit = name + 4; *digit >= '0' && *digit <= '9' && device < 1000; ++digit)
    device = device * 10 + (*digit - '0');
  return device;
}

void remember(void* allocator) {
  for (auto& place : g_allocators) {
    void* there = nullptr;
    if (place.compare_exchange_strong(there, allocator) || there == allocator) return;
  }
}

__attribute__((noinline, cold)) std::uint8_t make_pool(const Library& real, void* allocator) {
  char name[64] = "bfc";
  if (real.allocator_name != nullptr) {
    ReturnedString said{};
    real.allocator_name(&said, allocator);
    const std::size_t bytes = said.size < sizeof name ? said.size : sizeof name - 1;
    memcpy(name, said.data, bytes);
    name[bytes] = '\0';
    if (said.data != said.local && real.release != nullptr) real.release(said.data);
  }
  const StatsPrefix stats = ask_stats(real, allocator);
  const std::int32_t device = device_of(name);
  record::PoolKey key{reinterpret_cast<std::uint64_t>(allocator),
                      name,
                      device,
                      record::Level::tensor,
                      memory_of(real, allocator, device >= 0),
                      record::Framework::tensorflow,
                      spool::kPoolOrderExact | spool::kPoolAttributed};
  if (stats.has_limit && stats.limit > 0) key.limit_bytes = static_cast<std::uint64_t>(stats.limit);
  if (stats.in_use > 0) {
    key.before_bytes = static_cast<std::uint64_t>(stats.in_use);
    key.flags |= spool::kPoolSeenLate;
  }
  const std::uint8_t pool = record::pool(key);
  if (pool != record::kNoPool) remember(allocator);
  return pool;
}

}  // namespace

std::uint8_t pool_of(const Library& real, void* allocator) {
  const std::uint8_t pool = record::find_pool(reinterpret_cast<std::uint64_t>(allocator));
  return __builtin_expect(pool != record::kNoPool, 1) ? pool : make_pool(real, allocator);
}

void forget(void* allocator) {
  for (auto& place : g_allocators) {
    void* there = allocator;
    place.compare_exchange_strong(there, nullptr);
  }
  const std::uint8_t pool = record::find_pool(reinterpret_cast<std::uint64_t>(allocator));
  if (spool::Pool* totals = record::pool_totals(pool)) totals->key.store(~std::uint64_t{0}, std::memory_order_relaxed);
}

bool frees_tell_sizes() { return g_frees_tell_sizes.load(std::memory_order_relaxed); }
void learn_frees_tell_sizes() { g_frees_tell_sizes.store(true, std::memory_order_relaxed); }

int record_stats(const Library& real) {
  int answered = 0;
  for (auto& place : g_allocators) {
    void* allocator = place.load(std::memory_order_acquire);
    if (allocator == nullptr) continue;
    const StatsPrefix stats = ask_stats(real, allocator);
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

}  // namespace vramscope::capture::tensorflow
