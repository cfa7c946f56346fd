// When the forward pass, the backward pass and the optimizer ran, for programs that report no such phases: from what was
// allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/api.h"

namespace vramscope::analyze {

struct PassBand {
  std::string name;  // forward, backward, optimizer
  std::uint64_t begin_us = 0, end_us = 0;
};

// Those of the steps that overlap [t0, t1), each from its first to its last allocation; passes may overlap. Empty if these steps
// have more than `most_events` events: bands would be thinner than a pixel, and the walk over them long.
std::vector<PassBand> pass_bands(const Engine& engine, std::uint64_t t0_us, std::uint64_t t1_us,
                                 std::uint64_t most_events = 200'000);

}  // namespace vramscope::analyze
