// What XLA planned to take for a program of JAX, as reported when it was compiled.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analyze/index/store.h"

namespace vramscope::analyze {

// The newest plan of the program that allocations name as their op.
std::optional<trace::ProgramPlan> plan_of(const Store& store, std::string_view program);

// Whether a request of the program is the block for its temporaries.
bool is_for_temporaries(const trace::ProgramPlan& plan, Bytes requested);

// "XLA's plan of jit_train_step: 2.1 GiB of arguments, ... Beside its arguments it needs 1.3 GiB; 900.0 MiB was free."
std::string in_words(const Store& store, const trace::ProgramPlan& plan, Bytes free);

}  // namespace vramscope::analyze
