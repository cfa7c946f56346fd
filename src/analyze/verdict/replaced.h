// Growth without survivors: a block that is replaced by a larger one, step after step.
#pragma once

#include <vector>

#include "analyze/verdict/survivors.h"

namespace vramscope::analyze {

// Origins whose live bytes after the steps only ever rise, and too often to be explained by chance. `kept` is by how much, in
// requested bytes, because the pool's rounding makes granted bytes jump up and down.
std::vector<Origin> replaced(const Store& store, const Grouper& grouper, const StepWindow& window);

}  // namespace vramscope::analyze
