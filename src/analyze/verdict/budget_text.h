// A budget file for `vramscope check` out of what a run needed.
#pragma once

#include <string>
#include <string_view>

#include "analyze/api.h"

namespace vramscope::analyze {

// TOML with the run's own figures and a little to spare; the run itself meets it. Empty if the trace has nothing to limit.
std::string budget_for(const Engine& engine, std::string_view name);

}  // namespace vramscope::analyze
