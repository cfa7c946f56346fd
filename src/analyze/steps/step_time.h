// Time beside memory, within a step: how the steady steps divide their time among layers and ops.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "analyze/index/store.h"
#include "analyze/steps/measure.h"

namespace vramscope::analyze {

struct StepTime {
  std::map<std::string_view, std::uint64_t> layers;  // by name; "" = outside all layers
  std::vector<OpTime> ops;                           // the one with the most time first
};

// Microseconds of a step, as the mean of steady steps: those of the layers add up to it. Each moment belongs to what was seen
// last: the start or the end of a layer's call, or an allocation, with its op and layer. On a GPU that is the time to enqueue an
// op, not that of its kernel. Empty without steady steps.
StepTime step_time(const Store& store, const Steady& steady, std::size_t most_ops);

}  // namespace vramscope::analyze
