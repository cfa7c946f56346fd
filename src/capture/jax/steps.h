// Training steps of a program that reports none: the executions of the program that computes gradients most often.
#pragma once

#include "capture/jax/programs.h"

namespace vramscope::capture::jax::steps {

// The program is about to run: starts a step if it is the one that trains.
void program_runs(Program& program);

}  // namespace vramscope::capture::jax::steps
