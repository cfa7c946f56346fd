// Records TensorFlow's best-fit allocator (tsl::BFCAllocator): every block it hands out and takes back, and the regions it holds.
//
// The hook of AllocateRaw stores which call the thread is making and forwards it. A hook inside the allocator's lock draws the
// sequence number. The record is written after the call returns. So records have the order in which the allocator's own
// statistics changed, and the peak computed from them is the allocator's peak.
#include <stddef.h>
#include <string.h>

#include <cstdint>

#include "capture/hook.h"
#include "capture/stacks/stacks.h"
#include "capture/tensorflow/annotation.h"
#include "capture/tensorflow/library.h"
#include "capture/tensorflow/pools.h"
#include "record/recorder.h"
#include "record/state.h"

namespace vramscope::capture::tensorflow {

namespace {

using record::t_state;

void begin_call(record::Control& control, const void* self, std::uint8_t pool) {
  t_state.call = {self, 0, 0, &control.header->pools[pool], &control.header->next_seq};
  record::expect_event(t_state.call);
}

record::AllocatorCall end_call(const void* self) {
  const record::AllocatorCall call = t_state.call;
  t_state.call.allocator = nullptr;
  return call.allocator == self ? call : record::AllocatorCall{};
}

void draw_sequence_number(const void* self) {
  record::AllocatorCall& call = t_state.call;
  if (call.allocator == self && call.seq == 0) call.seq = call.next_seq->fetch_add(1, std::memory_order_relaxed);
}

// No hook inside the lock was reached: the order of this pool's records is only approximate.
void mark_order_as_approximate(spool::Pool& pool) {
  pool.flags.fetch_and(~std::uint32_t{spool::kPoolOrderExact}, std::memory_order_relaxed);
}

// AllocationAttributes starts with retry_on_failure. A caller that does not want retries can do without the block.
bool caller_wants_retries(const void* attributes) { return attributes != nullptr && *static_cast<const bool*>(attributes); }

// Almost always the pool that the thread used last.
std::uint8_t known_pool(const Library& real, void* self) {
  const bool last = t_state.last_pool_key == reinterpret_cast<std::uint64_t>(self);
  return __builtin_expect(last, 1) ? t_state.last_pool : pool_of(real, self);
}

void* allocate(const Library& real, record::Control& control, void* self, size_t alignment, size_t bytes,
               const void* attributes) {
  const std::uint8_t pool = known_pool(real, self);
  if (pool == record::kNoPool) return real.allocate_raw(self, alignment, bytes, attributes);

  begin_call(control, self, pool);
  void* block = real.allocate_raw(self, alignment, bytes, attributes);
  const record::AllocatorCall call = end_call(self);
  if (block == nullptr && bytes == 0) return block;

  // Read only now, although it was available before the call: cache misses then happen outside the lock, and overlap.
  const Annotation annotation = read_annotation(real);
  record::AllocEvent event;
  event.pool = pool;
  event.op = annotation.op;
  event.shape = annotation.shape;
  event.region = annotation.region;
  event.dtype = annotation.dtype;
  event.step = annotation.step;
  event.requested = bytes;
  event.stack = stacks::capture();
  if (block == nullptr) {
    if (caller_wants_retries(attributes)) event.flags |= spool::kFlagFinal;
    record::oom(event);
    return block;
  }
  event.address = reinterpret_cast<std::uint64_t>(block);
  event.seq = call.seq;
  event.count = call.granted == 0;  // otherwise it was counted inside the lock
  event.granted = call.granted != 0 ? call.granted : real.allocated_size(self, block);
  if (__builtin_expect(call.seq == 0, 0)) mark_order_as_approximate(*record::pool_totals(pool));
  record::alloc(event);
  return block;
}

void deallocate(const Library& real, record::Control& control, void* self, void* block) {
  const std::uint8_t pool = block != nullptr ? known_pool(real, self) : record::kNoPool;
  if (pool == record::kNoPool) return real.deallocate_raw(self, block);

  record::FreeEvent event;
  event.pool = pool;
  event.address = reinterpret_cast<std::uint64_t>(block);
  // Before 2.19, a free reports no size inside the lock: the allocator is asked for it while the block still exists.
  if (!frees_report_sizes()) event.bytes = real.allocated_size(self, block);
  begin_call(control, self, pool);
  real.deallocate_raw(self, block);
  const record::AllocatorCall call = end_call(self);
  if (call.granted != 0) learn_that_frees_report_sizes();
  event.seq = call.seq;
  event.count = call.granted == 0;
  if (__builtin_expect(call.seq == 0, 0)) mark_order_as_approximate(*record::pool_totals(pool));
  record::free(event);
}

void region_added(void* address, std::size_t bytes) {
  const void* self = t_state.call.allocator;
  if (self == nullptr) return;
  const std::uint8_t pool = record::find_pool(reinterpret_cast<std::uint64_t>(self));
  if (pool != record::kNoPool) record::region(pool, reinterpret_cast<std::uint64_t>(address), bytes, false);
}

}  // namespace

// ---- Called inside the allocator's lock: nothing slow, and no call back into the allocator. ----

void* on_find_chunk(const Library& real, void* self, int bin, size_t rounded, size_t bytes, std::uint64_t before) {
  void* block = real.find_chunk(self, bin, rounded, bytes, before);
  if (block != nullptr) draw_sequence_number(self);
  return block;
}

void on_mark_free(const Library& real, void* self, std::size_t chunk) {
  draw_sequence_number(self);
  real.mark_free(self, chunk);
}

void on_trace_me(const Library& real, void* self, std::size_t length, const char* name, const void* block, std::int64_t requested,
                 std::int64_t granted) {
  record::AllocatorCall& call = t_state.call;
  if (call.allocator == self && granted > 0) {
    draw_sequence_number(self);
    call.granted = static_cast<std::uint64_t>(granted);
    // "MemoryAllocation" or "MemoryDeallocation".
    if (length > 6 && name[6] == 'A') {
      record::count_alloc(*call.totals, call.granted);
    } else {
      record::count_free(*call.totals, call.granted);
    }
  }
  real.trace_me(self, length, name, block, requested, granted);
}

void* on_add_region(const Library& real, void* manager, void* address, std::size_t bytes) {
  region_added(address, bytes);
  return real.add_region(manager, address, bytes);
}

void* on_add_or_extend_region(const Library& real, void* manager, void* address, std::size_t bytes) {
  region_added(address, bytes);
  return real.add_or_extend_region(manager, address, bytes);
}

void on_visit_free(const Library& real, void* self, void* address, int index, std::size_t bytes) {
  // Also called for pools that are not recorded: the collector ignores an address that was never a region.
  if (const void* allocator = t_state.call.allocator) {
    const std::uint8_t pool = record::find_pool(reinterpret_cast<std::uint64_t>(allocator));
    if (pool != record::kNoPool) record::region(pool, reinterpret_cast<std::uint64_t>(address), bytes, true);
  }
  real.visit_free(self, address, index, bytes);
}

// ---- Called outside the lock. ----

void* on_allocate_raw(const Library& real, void* self, size_t alignment, size_t bytes, const void* attributes) {
  record::Control* control = record::recording();
  if (__builtin_expect(control == nullptr, 0)) return real.allocate_raw(self, alignment, bytes, attributes);
  return allocate(real, *control, self, alignment, bytes, attributes);
}

void on_deallocate_raw(const Library& real, void* self, void* block) {
  record::Control* control = record::recording();
  if (__builtin_expect(control == nullptr, 0)) return real.deallocate_raw(self, block);
  deallocate(real, *control, self, block);
}

// While an allocator is destroyed, every region that is returned belongs to it.
void destroy_with(void (*destroy)(void*), void* self) {
  const std::uint8_t pool = record::find_pool(reinterpret_cast<std::uint64_t>(self));
  record::Control* control = record::recording();
  if (control != nullptr && pool != record::kNoPool) begin_call(*control, self, pool);
  forget(self);
  destroy(self);
  end_call(self);
}

void on_destroy(const Library& real, void* self) { destroy_with(real.destroy, self); }
void on_destroy_base(const Library& real, void* self) { destroy_with(real.destroy_base, self); }

}  // namespace vramscope::capture::tensorflow

#define HOOK VS_HOOK_DEFINE
#include "capture/tensorflow/hooks.inc"
#undef HOOK
