// Changes of the program, as changes of its requests: another optimizer, precision, accumulation, recomputation.
#pragma once

#include <string>
#include <vector>

#include "analyze/whatif/recorded.h"

namespace vramscope::analyze {

struct Changed {
  std::vector<std::string> notes;  // what was done
  std::string confidence;          // high or low: of the weakest change; empty without changes
};

// The optimizers that a program can be changed to.
std::vector<std::string> optimizer_names();
std::vector<std::string> precision_names();

// Replaces the events of `recorded`. An error for a change that is not known or that the recording cannot show.
Result<Changed> change_requests(const Store& store, const WhatifRequest& request, RecordedPool& recorded);

}  // namespace vramscope::analyze
