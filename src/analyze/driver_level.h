// What the process took from the driver on one device, at a moment.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyze/pools.h"
#include "analyze/state.h"

namespace vramscope::analyze {

struct DriverLevel {
  bool recorded = false;
  Bytes total = 0;                      // regions, owners and cached
  Bytes regions = 0;                    // blocks that are regions of a framework's pool
  std::map<std::string, Bytes> owners;  // the other blocks
  Bytes cached = 0;                     // reserved by stream-ordered pools and graphs, and not in a live block
  // Beyond `total`: the driver gives out multiples of 2 MiB, and puts what is smaller into shared slabs of that size.
  Bytes rounding = 0;
  Bytes managed = 0;  // not in `total`: it lives on the device only while it is used there, and the card counts it for nobody
};

// `regions`: of the framework's pools on this device.
DriverLevel driver_level(const Engine::State& state, std::int64_t device, const std::vector<HeldRegion>& regions, Moment at);

}  // namespace vramscope::analyze
