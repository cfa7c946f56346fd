// What the verbs about batch sizes share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/api.h"
#include "cli/verb.h"

namespace vramscope::cli {

// "8,16": the option --batches. Empty for an empty text.
Result<std::vector<std::uint64_t>> batches_in(const std::string& text);

// The options --on, --limit and --batch.
void declare_device(Arguments& arguments, analyze::FitRequest& request);

// Opens the recordings, .vram files or run folders with one trace each, asks, and prints the answer.
Result<int> show_fit(const std::vector<std::string>& runs, const analyze::FitRequest& request, bool json);

}  // namespace vramscope::cli
