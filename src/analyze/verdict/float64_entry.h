// Where float64 enters a program; what uses it afterwards is not the cause.
#pragma once

#include <string>

#include "analyze/index/store.h"

namespace vramscope::analyze {

// "train.py:31": the line that turned the largest array of float64 into a tensor; otherwise that of the largest variable of this
// type; otherwise that of the first op that computed in it. Empty if no line is known.
std::string float64_entry(const Store& store);

// Bytes of the largest variable of this type, as reported.
Bytes widest_variable(const Store& store);

}  // namespace vramscope::analyze
