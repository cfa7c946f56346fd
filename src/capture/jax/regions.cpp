#include "capture/jax/regions.h"

#include <atomic>
#include <cstddef>

#include "capture/cuda/blocks.h"
#include "record/recorder.h"
#include "record/state.h"

namespace vramscope::capture::jax::regions {

namespace {

namespace blocks = cuda::blocks;

struct Region {
  std::atomic<std::uint64_t> begin, end;  // end is written first; 0: free
};
constexpr std::size_t kMostRegions = 64;  // of one pool: each is as large as all before it together
struct Regions {
  std::atomic<std::uint64_t> generation;  // the spool in which they are recorded
  Region known[kMostRegions];
};
Regions g_regions[spool::kMaxPools];

bool is_inside(const Region& region, std::uint64_t address) {
  return address >= region.begin.load(std::memory_order_acquire) && address < region.end.load(std::memory_order_relaxed);
}

struct Search {
  std::uint64_t address;
  blocks::Block found;
};

bool match(blocks::Block& block, void* data) {
  auto& search = *static_cast<Search*>(data);
  const bool has_memory =
      block.space == blocks::Space::device || block.space == blocks::Space::host || block.space == blocks::Space::mapping;
  if (has_memory && search.address >= block.key && search.address < block.key + block.bytes) search.found = block;
  return true;
}

void forget(Regions& regions) {
  for (Region& region : regions.known) {
    region.begin.store(0, std::memory_order_relaxed);
    region.end.store(0, std::memory_order_relaxed);
  }
}

__attribute__((noinline, cold)) void add_region(std::uint8_t pool, Regions& regions, std::uint64_t address) {
  Search search{address, {}};
  blocks::update_all(match, &search);
  if (search.found.space == blocks::Space::none) return;  // taken from the driver before the recording began
  for (Region& region : regions.known) {
    std::uint64_t free = 0;
    if (!region.end.compare_exchange_strong(free, search.found.key + search.found.bytes)) {
      if (free == search.found.key + search.found.bytes) return;  // another thread was faster
      continue;
    }
    region.begin.store(search.found.key, std::memory_order_release);
    record::region(pool, search.found.key, search.found.bytes, false);
    return;
  }
}

}  // namespace

void note_block(std::uint8_t pool, std::uint64_t address) {
  Regions& regions = g_regions[pool];
  const std::uint64_t generation = record::t_state.generation;
  if (__builtin_expect(regions.generation.load(std::memory_order_relaxed) != generation, 0)) {
    forget(regions);
    regions.generation.store(generation, std::memory_order_relaxed);
  }
  for (const Region& region : regions.known) {
    if (region.end.load(std::memory_order_relaxed) == 0) break;
    if (is_inside(region, address)) return;
  }
  add_region(pool, regions, address);
}

void return_all(std::uint8_t pool) {
  for (Region& region : g_regions[pool].known) {
    const std::uint64_t begin = region.begin.exchange(0), end = region.end.exchange(0);
    if (end != 0) record::region(pool, begin, end - begin, true);
  }
}

}  // namespace vramscope::capture::jax::regions
