// What the process allocated from the driver on one device, at a moment.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyze/index/pools.h"
#include "analyze/query/state.h"

namespace vramscope::analyze {

struct DriverLevel {
  bool recorded = false;
  Bytes total = 0;                      // regions, owners and cached
  Bytes regions = 0;                    // blocks that are regions of a framework's pool
  std::map<std::string, Bytes> owners;  // the other blocks
  Bytes cached = 0;                     // reserved by stream-ordered pools and graphs, but not in a live block
  // Beyond `total`: the driver allocates multiples of 2 MiB, and puts smaller requests into shared slabs of that size.
  Bytes rounding = 0;
  Bytes managed = 0;  // not in `total`: it is on the device only while it is used there, and the card assigns it to no process
};

// `regions`: of the framework's pools on this device.
DriverLevel driver_level(const Engine::State& state, std::int64_t device, const std::vector<HeldRegion>& regions, Moment at);

}  // namespace vramscope::analyze
