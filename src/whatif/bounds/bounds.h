// How low memory could go: bounds below every allocator, and a placement that shows how close one can get.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "whatif/event.h"

namespace vramscope::whatif {

struct Bounds {
  Bytes requested = 0;   // at its peak: no allocator can hold less
  Bytes live = 0;        // the same with each block rounded up to the allocator's quantum
  Bytes per_stream = 0;  // sum of the peaks of all streams: for allocators that never share between streams
  Bytes paged = 0;  // with whole pages for each large block, small ones packed: for allocators that map pages where they like
  // The height of the best placement that was found; nullopt if there are too many blocks to try.
  std::optional<Bytes> packed;
};
Bounds bounds_of(std::span<const Event> events, Bytes quantum);

// A block from its allocation to its free, as positions in the events.
struct Interval {
  std::uint64_t from = 0, to = 0;
  Bytes bytes = 0;
};
std::vector<Interval> intervals_of(std::span<const Event> events, Bytes quantum);

// Offsets such that no two blocks overlap in time and space. The lowest of several greedy placements.
struct Packing {
  Bytes height = 0;
  std::vector<Bytes> offsets;  // by interval
};
Packing pack(std::span<const Interval> blocks);
inline constexpr std::size_t kMostPacked = 12'000;  // above that, packing takes seconds

}  // namespace vramscope::whatif
