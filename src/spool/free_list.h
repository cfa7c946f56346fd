// The free segments of a spool as a stack, so that finding one always costs the same. The collector and the process that grows
// its spool push; threads that need a segment pop. The most recently returned segment is used first, so that the steady state
// cycles through a few warm segments.
#pragma once

#include "spool/layout.h"

namespace vramscope::spool {

// `free_head` stores the index + 1 of the top in its lower half (0 = empty), and in its upper half a number that every change
// increments: a thread that was interrupted between reading the top and replacing it finds another number, even if the same
// segment is on top again.
inline std::uint64_t free_top(std::uint64_t head, std::uint32_t index_plus_1) { return ((head >> 32) + 1) << 32 | index_plus_1; }

// A limit on retries: a damaged process that keeps changing the head cannot block the other side forever.
inline constexpr int kFreeListAttempts = 10'000;

// The segment belongs to the caller and is in no list. From now on it is free, or lost to the process if the list is damaged.
inline void push_free(Header& header, SegmentHeader& segment, std::uint32_t index) {
  segment.state.store(SegmentState::free, std::memory_order_relaxed);
  std::uint64_t head = header.free_head.load(std::memory_order_relaxed);
  for (int attempt = 0; attempt < kFreeListAttempts; ++attempt) {
    segment.next_free.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
    if (header.free_head.compare_exchange_weak(head, free_top(head, index + 1), std::memory_order_release)) break;
  }
  header.given_back.fetch_add(1, std::memory_order_release);
}

// The segment that was on top, now owned by the caller; NULL if there is none. `at(index)` returns the segment. `probes` counts
// the segments examined.
template <typename At>
SegmentHeader* pop_free(Header& header, std::uint32_t count, At at, std::uint64_t& probes) {
  std::uint64_t head = header.free_head.load(std::memory_order_acquire);
  for (int attempt = 0; attempt < kFreeListAttempts; ++attempt) {
    const auto top = static_cast<std::uint32_t>(head);
    if (top == 0 || top > count) return nullptr;
    SegmentHeader* segment = at(top - 1);
    ++probes;
    const std::uint32_t next = segment->next_free.load(std::memory_order_relaxed);
    if (!header.free_head.compare_exchange_weak(head, free_top(head, next), std::memory_order_acquire)) continue;
    segment->state.store(SegmentState::owned, std::memory_order_relaxed);
    return segment;
  }
  return nullptr;
}

}  // namespace vramscope::spool
