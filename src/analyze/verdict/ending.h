// How the program ended, and in which step.
#pragma once

#include "analyze/query/state.h"
#include "analyze/verdict/headline.h"

namespace vramscope::analyze {

Ending ending_of(const Engine::State& state);

}  // namespace vramscope::analyze
