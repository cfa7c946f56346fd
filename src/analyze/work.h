// How much the questions to an engine have cost, without a clock.
#pragma once

#include <cstdint>

#include "analyze/api.h"

namespace vramscope::analyze {

// Blocks and events that all questions so far have looked at. The same questions give the same number on every machine.
std::uint64_t work_of(const Engine& engine);

}  // namespace vramscope::analyze
