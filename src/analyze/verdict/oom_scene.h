// The state of a pool when a request failed, and what that state could have served.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "analyze/index/pools.h"
#include "analyze/query/state.h"

namespace vramscope::analyze {

struct OomScene {
  Bytes requested = 0;
  Bytes need = 0;  // the minimum size of a new region for it: the request rounded as its allocator does
  Bytes live = 0, regions = 0, limit = 0, largest_hole = 0, largest_region = 0;
  Bytes scratch = 0;               // workspaces and temporaries that are live
  Bytes hole_without_scratch = 0;  // largest, if all of that were freed
  bool request_is_scratch = false;
  Bytes card = 0, others = 0;  // 0 = not recorded; for a host pool, the machine's memory
  Bytes outside = 0;           // of the card: context, direct allocations of this process
  Bytes cut = 0;               // the last region would have been this much larger, had the limit not cut it
  Bytes stretch = 0;           // and would serve the request if it were this much larger
  bool on_host = false;
  bool regions_known = false;  // otherwise `regions` is what was live
  const char* where() const { return on_host ? "machine" : "card"; }

  // What this pool could have of the card: everything except what others and the rest of this process hold.
  Bytes mine() const { return card - std::min(card, outside + others); }
  // The most that the pool could hold; if neither limit nor card is known, what it holds.
  Bytes reach() const {
    Bytes most = card == 0 ? limit : limit == 0 ? mine() : std::min(limit, mine());
    return std::max(regions, most);
  }
  bool reach_known() const { return limit != 0 || card != 0; }
  bool free_known() const { return reach_known() || regions_known; }
  Bytes free() const { return reach() - std::min(reach(), live); }
  Bytes room() const { return reach() - regions; }  // that it may still take, as a separate region: regions are not joined
  Bytes largest_piece() const { return std::max(largest_hole, room()); }
  // Enough was free, but in pieces.
  bool fragmented() const { return free() >= requested && largest_piece() < requested; }
  // The smallest increase of the limit that serves the request.
  Bytes raise() const;
};

// nullopt: the event names a pool that the trace does not know. The place contains only the pool, with the index of the whole
// one.
struct FailedPool {
  Place place;
  int index = -1;
  std::uint32_t pool = 0;
};
std::optional<FailedPool> failed_pool(const Engine::State& state, const trace::Oom& oom);
OomScene scene_of(const Engine::State& state, const FailedPool& where, const Stamped<trace::Oom>& oom);

// A program that retries in a loop fails the same way each time: further failures are not examined.
inline constexpr std::size_t kMostFailures = 20;

}  // namespace vramscope::analyze
