// Growth without survivors: a block that is replaced by a larger one, step after step.
#pragma once

#include <vector>

#include "analyze/survivors.h"

namespace vramscope::analyze {

// Origins whose live bytes after the steps only ever rise, and often enough that chance does not explain it. `kept` holds by how
// much, in requested bytes: what the pool adds by rounding jumps up and down.
std::vector<Origin> replaced(const Store& store, const Grouper& grouper, const StepWindow& window);

}  // namespace vramscope::analyze
