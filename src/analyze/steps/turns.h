// Joins the steps of optimizers that take turns, as in a GAN, into one iteration.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/index/store.h"

namespace vramscope::analyze {

// A step and what applied its gradients; 0 if unknown.
struct Applied {
  StepRow step;
  std::uint32_t by = 0;
};

// `steps` in the order of their start.
std::vector<StepRow> join_turns(const std::vector<Applied>& steps);

}  // namespace vramscope::analyze
