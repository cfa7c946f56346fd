#include "capture/cuda/pools.h"

#include <time.h>

#include <atomic>

#include "capture/cuda/driver.h"
#include "capture/cuda/place.h"
#include "record/recorder.h"
#include "record/state.h"
#include "record/text.h"

namespace vramscope::capture::cuda {

// What the driver reserves for a pool, as last read.
struct Reserved {
  std::atomic<bool> being_read;
  std::atomic<std::uint64_t> generation;  // of the recorder: a forked child begins with nothing recorded
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint32_t> calls;
  std::atomic<std::uint64_t> read_at_ms;
};

struct MemPool {
  std::atomic<void*> handle;
  std::atomic<int> device;
  std::atomic<bool> ready;
  bool is_default;
  Reserved reserved;
};

namespace {

constexpr std::size_t kMaxMemPools = 24;
constexpr std::uint32_t kEveryCalls = 64;
constexpr std::uint64_t kEveryMs = 10;

MemPool g_mem_pools[kMaxMemPools];
std::atomic<void*> g_current[kMaxDevices];
Reserved g_graphs[kMaxDevices];
std::atomic<std::uint64_t> g_graph_devices;  // bit per device whose graphs allocate

struct FamilyInfo {
  const char* name;
  record::Memory memory;
};
constexpr FamilyInfo kFamilies[] = {
    {"device memory", record::Memory::device},  {"managed", record::Memory::managed},
    {"pinned", record::Memory::pinned},         {"arrays", record::Memory::array},
    {"physical (VMM)", record::Memory::device}, {"reserved addresses", record::Memory::virtual_only},
    {"imported", record::Memory::device},       {"graph memory", record::Memory::device},
    {"other mempools", record::Memory::device},
};

using Name = record::Text<64>;

void add_device(Name& name, int device) {
  name.add("CUDA");
  if (device >= 0) name.add(":").add(static_cast<std::uint64_t>(device));
  name.add(" ");
}

std::uint8_t find_or_make(std::uint64_t key, const Name& name, int device, record::Memory memory) {
  return record::pool({key, name.c_str(), device, record::Level::driver, memory, record::Framework::cuda});
}

// Coarse: a few nanoseconds, steps of a few milliseconds.
std::uint64_t now_ms() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000 + static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000;
}

bool due(Reserved& reserved) {
  if (reserved.generation.load(std::memory_order_relaxed) != record::t_state.generation) return true;
  const std::uint32_t call = reserved.calls.fetch_add(1, std::memory_order_relaxed);
  return call % kEveryCalls == 0 || now_ms() - reserved.read_at_ms.load(std::memory_order_relaxed) >= kEveryMs;
}

// The reserved bytes are recorded as one region without an address, whose size is replaced.
void note(Reserved& reserved, std::uint8_t pool, std::uint64_t bytes) {
  reserved.read_at_ms.store(now_ms(), std::memory_order_relaxed);
  const std::uint64_t generation = record::t_state.generation;
  const bool known = reserved.generation.exchange(generation, std::memory_order_relaxed) == generation;
  const std::uint64_t before = known ? reserved.bytes.load(std::memory_order_relaxed) : 0;
  reserved.bytes.store(bytes, std::memory_order_relaxed);
  if (bytes == before) return;
  if (before != 0) record::region(pool, 0, before, true);
  if (bytes != 0) record::region(pool, 0, bytes, false);
}

// One thread at a time reads and records, so that the regions replace each other in order; the others do not wait for it.
template <typename Read>
void read_alone(Reserved& reserved, Read read) {
  if (reserved.being_read.exchange(true, std::memory_order_acquire)) return;
  read();
  reserved.being_read.store(false, std::memory_order_release);
}

}  // namespace

std::uint8_t family_pool(Family family, int device) {
  const auto index = static_cast<std::uint64_t>(family);
  const std::uint64_t key = 0xcdaull << 48 | index << 32 | static_cast<std::uint32_t>(device + 1);
  const std::uint8_t known = record::find_pool(key);
  if (__builtin_expect(known != record::kNoPool, 1)) return known;
  Name name;
  add_device(name, device);
  name.add(kFamilies[index].name);
  return find_or_make(key, name, device, kFamilies[index].memory);
}

MemPool* mem_pool(CUmemoryPool handle, int device) {
  if (handle == nullptr) return nullptr;
  for (MemPool& pool : g_mem_pools) {
    void* there = pool.handle.load(std::memory_order_acquire);
    if (there == nullptr && pool.handle.compare_exchange_strong(there, handle, std::memory_order_acq_rel)) {
      CUmemoryPool standard = nullptr;
      if (usable(device) && VS_REAL(cuDeviceGetDefaultMemPool)(&standard, device) == kSuccess)
        pool.is_default = standard == handle;
      pool.device.store(device, std::memory_order_relaxed);
      pool.ready.store(true, std::memory_order_release);
      return &pool;
    }
    if (there != handle) continue;
    for (int spin = 0; spin < 10000 && !pool.ready.load(std::memory_order_acquire); ++spin) __builtin_ia32_pause();
    return &pool;
  }
  return nullptr;
}

MemPool* current_mem_pool(int device) {
  if (!usable(device)) return nullptr;
  void* handle = g_current[device].load(std::memory_order_acquire);
  if (handle == nullptr) {
    if (VS_REAL(cuDeviceGetMemPool)(&handle, device) != kSuccess) return nullptr;
    g_current[device].store(handle, std::memory_order_release);
  }
  return mem_pool(handle, device);
}

void set_current_mem_pool(int device, CUmemoryPool handle) {
  if (usable(device)) g_current[device].store(handle, std::memory_order_release);
}

int device_of(const MemPool& pool) { return pool.device.load(std::memory_order_relaxed); }

std::uint8_t recorded_pool(const MemPool& pool) {
  const auto key = reinterpret_cast<std::uint64_t>(pool.handle.load(std::memory_order_relaxed)) ^ 0xcdbull << 48;
  const std::uint8_t known = record::find_pool(key);
  if (__builtin_expect(known != record::kNoPool, 1)) return known;
  Name name;
  add_device(name, device_of(pool));
  name.add(pool.is_default ? "default mempool" : "mempool ");
  if (!pool.is_default) name.add(static_cast<std::uint64_t>(&pool - g_mem_pools));
  return find_or_make(key, name, device_of(pool), device_of(pool) < 0 ? record::Memory::pinned : record::Memory::device);
}

void sample_reserved(MemPool& pool, bool now) {
  const std::uint8_t recorded = recorded_pool(pool);
  const spool::Pool* totals = record::pool_totals(recorded);
  if (totals == nullptr) return;
  const bool outgrown = totals->live_bytes.load(std::memory_order_relaxed) > pool.reserved.bytes.load(std::memory_order_relaxed);
  if (!due(pool.reserved) && !outgrown && !now) return;
  read_alone(pool.reserved, [&] {
    std::uint64_t bytes = 0;
    if (VS_REAL(cuMemPoolGetAttribute)(pool.handle.load(std::memory_order_relaxed), kPoolReservedCurrent, &bytes) == kSuccess)
      note(pool.reserved, recorded, bytes);
  });
}

void pool_destroyed(CUmemoryPool handle) {
  for (MemPool& pool : g_mem_pools) {
    if (pool.handle.load(std::memory_order_acquire) != handle) continue;
    note(pool.reserved, recorded_pool(pool), 0);
    for (auto& current : g_current) {
      void* gone = handle;
      current.compare_exchange_strong(gone, nullptr, std::memory_order_relaxed);
    }
  }
}

void graphs_allocate(int device) {
  if (usable(device)) g_graph_devices.fetch_or(1ull << device, std::memory_order_relaxed);
}

bool any_graph_memory() { return g_graph_devices.load(std::memory_order_relaxed) != 0; }

void sample_graph_memory(int device, bool now) {
  if (!usable(device) || (g_graph_devices.load(std::memory_order_relaxed) >> device & 1) == 0) return;
  if (!due(g_graphs[device]) && !now) return;
  read_alone(g_graphs[device], [&] {
    std::uint64_t bytes = 0;
    if (VS_REAL(cuDeviceGetGraphMemAttribute)(device, kGraphReservedCurrent, &bytes) == kSuccess)
      note(g_graphs[device], family_pool(Family::graph, device), bytes);
  });
}

}  // namespace vramscope::capture::cuda
