// What programs of JAX say about memory when they are compiled: state that is not donated, donations that failed, and arguments
// of which several devices hold the same copy.
#pragma once

#include <vector>

#include "analyze/index/store.h"

namespace vramscope::analyze::jax {

std::vector<Finding> findings(const Store& store);

}  // namespace vramscope::analyze::jax
