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

// "jit_train_step takes 1.3 GiB beside its arguments: ...; 900.0 MiB was free."
std::string in_words(const Store& store, const trace::ProgramPlan& plan, Bytes free);

}  // namespace vramscope::analyze
