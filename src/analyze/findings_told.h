// Faults in the user's code that the Python side saw and allocations cannot show: settings called fact.KIND.KEY
// (docs/design/python_side.md). Each finding names its line.
#pragma once

#include <string>
#include <vector>

#include "analyze/store.h"

namespace vramscope::analyze {

// What is known from the allocations and makes a told fault weigh more than its fact says.
struct Measured {
  Bytes leaked = 0;       // kept from step to step so far
  Bytes float64 = 0;      // live at the peak
  std::string wide_line;  // where most of the float64 comes from
};

std::vector<Finding> told_findings(const Store& store, const Measured& measured);

}  // namespace vramscope::analyze
