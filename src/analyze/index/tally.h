// What each pool, and each owner of driver memory, held at most and at the end, and how often it allocated and freed.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/basics.h"
#include "analyze/index/scan.h"

namespace vramscope::analyze {

struct Tally {
  std::vector<Held> pools;          // by pool
  Held driver;                      // device memory of the driver level, over all of its pools
  std::vector<HeldByOwner> owners;  // the same by owner
};

// Whether a pool of this kind holds memory of a device.
bool is_device_memory(trace::Memory memory);

Tally tally(const Columns& columns, const Tables& tables, const trace::Dictionaries& dictionaries);

}  // namespace vramscope::analyze
