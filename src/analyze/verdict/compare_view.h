// One way to look at two compared runs: at which instants, and what to say about them.
#pragma once

#include <string>
#include <string_view>

#include "analyze/api.h"
#include "analyze/gen/view_answers.h"

namespace vramscope::analyze {

// `at`: "peak" = each run at its own peak, "same" = both at the same point of the same step, anything else = the default of
// compare(). The result has two instants.
CompareView compare_view(const Compare& compared, std::string_view at);

// The step whose peak is compared, and that step in words: "step 20, 12.3 ms", or "whole run" if there is none.
const Step* compared_step(const Engine& engine, const Steps& steps, std::string_view at);
std::string in_words(const Step* compared);

// What a group has in the first and in the last of two runs.
CompareRow compare_row(std::string_view key, Bytes first, Bytes last);

}  // namespace vramscope::analyze
