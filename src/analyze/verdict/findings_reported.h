// Faults other than leaks in the user's code that the Python side of several frameworks reports and allocations cannot show
// (docs/design/python_side.md). Each finding names its line.
#pragma once

#include <string>
#include <vector>

#include "analyze/index/store.h"

namespace vramscope::analyze {

// What is known from the allocations and makes a reported fault weigh more than the report says.
struct Measured {
  Bytes float64 = 0;         // live at the peak
  Bytes float64_saving = 0;  // how much lower the peak would be with float32
};

std::vector<Finding> reported_findings(const Store& store, const Measured& measured);

}  // namespace vramscope::analyze
