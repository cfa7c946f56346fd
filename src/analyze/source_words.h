// What an imported trace was made from, in words.
#pragma once

#include <string>

#include "analyze/api.h"

namespace vramscope::analyze {

// "imported from an RMM log (CSV), which does not contain: steps, layers"; empty if the trace was recorded, or nothing is
// missing.
std::string source_in_words(const Overview& overview);

}  // namespace vramscope::analyze
