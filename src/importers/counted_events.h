// Allocations and frees that carry the allocator's running total: what the profilers of TensorFlow and PyTorch write.
#pragma once

#include <cstdint>
#include <vector>

#include "importers/profile.h"

namespace vramscope::importers {

// A number from a text as an integer; 0 if none is near.
std::uint64_t whole(double number);

struct CountedEvent {
  double time_us = 0;
  std::uint64_t address = 0, requested = 0, granted = 0;
  std::uint64_t total = 0;  // live bytes after it; 0: unknown
  bool is_free = false;
  Details details = {};
};

// Adds the events of one pool in order of time. Blocks that were live before the first event are added as such: those that are
// freed later with their size, all others as one block, so that the totals are those of the source. Returns whether there were
// any.
bool add_counted(Profile& profile, std::uint32_t pool, std::vector<CountedEvent> events);

}  // namespace vramscope::importers
