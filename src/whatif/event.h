// What a program asked of its allocator, in order: the input of every replay, bound and forecast.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace vramscope::whatif {

using Bytes = std::uint64_t;
inline constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();
// Sizes come from files of others. No device is larger, and no model has to handle more: sums and roundings stay far from 2^64.
inline constexpr Bytes kLargestDevice = Bytes{1} << 46;

enum class What : std::uint8_t {
  alloc,          // `bytes` for `block`
  free,           // the block can be used again
  hold,           // the program is done with the block, but another stream is not; a free follows, or a flush returns it
  empty_cache,    // return unused memory to the device
  synchronize,    // the host waited for the device
  limit,          // the pool may hold at most `bytes` from now on; 0 = no limit
  begin_capture,  // nothing is flushed while a capture is under way
  end_capture,
  retire_pool,  // nobody uses the private pool any more
};

// Blocks have dense numbers, each used once. Streams are numbered by the order of their handles. Pool 0 is the allocator's own.
struct Event {
  Bytes bytes = 0;
  std::uint32_t block = 0;
  std::uint16_t stream = 0;
  What what = What::alloc;
  std::uint8_t pool = 0;
};
static_assert(sizeof(Event) == 16);

using Events = std::vector<Event>;

// Not of the allocator as a whole.
inline bool is_of_block(const Event& event) {
  return event.what == What::alloc || event.what == What::free || event.what == What::hold;
}

}  // namespace vramscope::whatif
