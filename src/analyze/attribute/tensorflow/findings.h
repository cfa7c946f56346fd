// What the Python side reports of TensorFlow's tapes, constants and datasets.
#pragma once

#include <vector>

#include "analyze/index/store.h"

namespace vramscope::analyze::tensorflow {

std::vector<Finding> findings(const Store& store);

}  // namespace vramscope::analyze::tensorflow
