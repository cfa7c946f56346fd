// What the recorder keeps per process and per thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "spool/layout.h"

namespace vramscope::record {

// On a page that the kernel zeroes in a forked child (MADV_WIPEONFORK): a child, however it was forked, sees generation 0 and
// starts its own spool. The child never writes to anything of the parent's.
struct Control {
  std::atomic<std::uint64_t> generation;
  spool::Header* header;
  std::byte* segments;  // first segment; the address range for all of them is reserved
  std::uint32_t segment_limit;
  bool use_tsc;
  // How much had been freed or sealed when a search for a segment found nothing: until there is more, another search would fail
  // too.
  std::atomic<std::uint64_t> nothing_at;
  std::atomic<std::uint64_t> probes;  // segments examined in all searches
};

// What a framework hook remembers between the points of one allocator call. Stored by value: a nested or unwound call cannot
// leave a pointer behind, it only overwrites.
struct AllocatorCall {
  const void* allocator;  // the allocator whose call is in progress, NULL = none
  std::uint64_t seq;      // drawn inside the allocator's lock, 0 = not yet
  std::uint64_t granted;  // 0 = not reported
  spool::Pool* totals;    // of the allocator's pool
  std::atomic<std::uint64_t>* next_seq;
};

// The last short text that a thread looked up, by its content: up to 16 characters.
struct RememberedText {
  std::uint64_t letters[2];
  std::uint32_t bytes;
  std::uint32_t id;
};

struct ThreadState {
  std::uint64_t generation;
  std::byte* segment;
  std::uint32_t cursor;
  std::uint8_t busy;
  std::uint8_t last_pool;
  std::uint16_t reserved;
  std::uint64_t last_pool_key;
  AllocatorCall call;
  RememberedText region;
};

// Static TLS is scarce for a library that is opened late (about 1.6 KiB for all of them): keep this small.
static_assert(sizeof(ThreadState) <= 128);

extern constinit thread_local ThreadState t_state;
extern std::atomic<Control*> g_control;

// The first event of a thread, of a process, or after a fork: NULL if nothing can be recorded.
Control* activate();

// NULL: nothing is recorded. Takes a few loads and compares in the common case.
inline Control* live_control() {
  Control* control = g_control.load(std::memory_order_relaxed);
  const bool known =
      control != nullptr && control->generation.load(std::memory_order_relaxed) == t_state.generation && t_state.generation != 0;
  if (__builtin_expect(!known, 0)) control = activate();
  return control != nullptr && control->header->stop.load(std::memory_order_relaxed) == 0 ? control : nullptr;
}

// For the entry of a hook. NULL: nothing is recorded, or this thread is inside the recorder.
inline Control* recording() {
  Control* control = live_control();
  return __builtin_expect(t_state.busy == 0, 1) ? control : nullptr;
}

}  // namespace vramscope::record
