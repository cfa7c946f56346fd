// Records XLA's best-fit allocator (tsl::BFCAllocator) inside a plugin: every block it hands out and takes back.
//
// The hooks are in the slots of the class's vtable, outside the allocator's lock: an allocation is numbered after the call, a
// free before it. That is the allocator's own order unless an allocation and a free are in progress at the same time; then the
// pool's peak may be a little higher than what is computed, and the pool says so (kPoolOrderExact).
#include <atomic>
#include <cstdint>
#include <utility>

#include "capture/jax/activity.h"
#include "capture/jax/plugins.h"
#include "capture/jax/regions.h"
#include "capture/stacks/stacks.h"
#include "record/recorder.h"
#include "record/state.h"

namespace vramscope::capture::jax {

namespace {

// The calls in progress in a pool: allocations in the lower half, frees in the upper half.
std::atomic<std::uint64_t> g_inside[spool::kMaxPools];
constexpr std::uint64_t kOneAlloc = 1, kOneFree = std::uint64_t{1} << 32;
constexpr std::uint64_t kAllocs = kOneFree - 1, kFrees = ~kAllocs;

void enter(std::uint8_t pool, std::uint64_t one, std::uint64_t others) {
  if (__builtin_expect((g_inside[pool].fetch_add(one, std::memory_order_acq_rel) & others) == 0, 1)) return;
  record::pool_totals(pool)->flags.fetch_and(~std::uint32_t{spool::kPoolOrderExact}, std::memory_order_relaxed);
}
void leave(std::uint8_t pool, std::uint64_t one) { g_inside[pool].fetch_sub(one, std::memory_order_acq_rel); }

__attribute__((noinline, cold)) std::uint8_t make_pool(Allocator& real, void* self) {
  const std::uint8_t pool = real.pools.make(real.queries, self, kFramework, spool::kPoolOrderExact | spool::kPoolAttributed);
  if (pool != record::kNoPool) record::setting("jax.allocator_found_by", text_of(real.found_by));
  return pool;
}

std::uint8_t pool_of(Allocator& real, void* self) {
  const std::uint8_t pool = record::find_pool(reinterpret_cast<std::uint64_t>(self));
  return __builtin_expect(pool != record::kNoPool, 1) ? pool : make_pool(real, self);
}

// AllocationAttributes starts with retry_on_failure. A caller that does not want retries can do without the block.
bool caller_wants_retries(const void* attributes) { return attributes != nullptr && *static_cast<const bool*>(attributes); }

void* allocate(std::size_t plugin, void* self, std::size_t alignment, std::size_t bytes, const void* attributes) {
  Allocator& real = allocator_of(plugin);
  const std::uint8_t pool = record::recording() != nullptr ? pool_of(real, self) : record::kNoPool;
  if (pool == record::kNoPool) return real.allocate(self, alignment, bytes, attributes);

  enter(pool, kOneAlloc, kFrees);
  void* const block = real.allocate(self, alignment, bytes, attributes);
  if (block != nullptr || bytes != 0) {
    record::AllocEvent event;
    event.pool = pool;
    event.requested = bytes;
    event.stack = stacks::capture();
    const Activity activity = current_activity();
    event.op = activity.op;
    event.region = activity.region;
    event.step = activity.run;
    if (block == nullptr) {
      if (caller_wants_retries(attributes)) event.flags |= spool::kFlagFinal;
      record::oom(event);
    } else {
      event.address = reinterpret_cast<std::uint64_t>(block);
      event.granted = real.allocated_size(self, block);
      regions::note_block(pool, event.address);
      record::alloc(event);
    }
  }
  leave(pool, kOneAlloc);
  return block;
}

void deallocate(std::size_t plugin, void* self, void* block) {
  Allocator& real = allocator_of(plugin);
  const std::uint8_t pool = block != nullptr && record::recording() != nullptr ? pool_of(real, self) : record::kNoPool;
  if (pool == record::kNoPool) return real.deallocate(self, block);

  enter(pool, kOneFree, kAllocs);
  record::FreeEvent event;
  event.pool = pool;
  event.address = reinterpret_cast<std::uint64_t>(block);
  event.bytes = real.allocated_size(self, block);
  record::free(event);
  real.deallocate(self, block);
  leave(pool, kOneFree);
}

void destroy(std::size_t plugin, void* self, void (*Allocator::*how)(void*)) {
  Allocator& real = allocator_of(plugin);
  const std::uint8_t pool = record::find_pool(reinterpret_cast<std::uint64_t>(self));
  (real.*how)(self);
  if (pool == record::kNoPool) return;
  regions::return_all(pool);
  real.pools.forget(self);
}

// One set of hooks for each plugin, because a slot of a vtable has no room for a number.
template <std::size_t kPlugin>
struct Hooks {
  static void* on_allocate(void* self, std::size_t alignment, std::size_t bytes, const void* attributes) {
    return allocate(kPlugin, self, alignment, bytes, attributes);
  }
  static void on_deallocate(void* self, void* block) { deallocate(kPlugin, self, block); }
  static void on_destroy(void* self) { destroy(kPlugin, self, &Allocator::destroy); }
  static void on_destroy_and_free(void* self) { destroy(kPlugin, self, &Allocator::destroy_and_free); }

  static void* of(Method method) {
    switch (method) {
      case Method::allocate:
        return reinterpret_cast<void*>(&on_allocate);
      case Method::deallocate:
        return reinterpret_cast<void*>(&on_deallocate);
      case Method::destroy:
        return reinterpret_cast<void*>(&on_destroy);
      case Method::destroy_and_free:
        return reinterpret_cast<void*>(&on_destroy_and_free);
      default:
        return nullptr;
    }
  }
};

template <std::size_t... kPlugins>
void* find_hook(std::size_t plugin, Method method, std::index_sequence<kPlugins...>) {
  void* found = nullptr;
  ((plugin == kPlugins ? void(found = Hooks<kPlugins>::of(method)) : void()), ...);
  return found;
}

}  // namespace

void* hook_of(std::size_t plugin, Method method) { return find_hook(plugin, method, std::make_index_sequence<kMostPlugins>()); }

}  // namespace vramscope::capture::jax
