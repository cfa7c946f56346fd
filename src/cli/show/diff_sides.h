// Which traces `diff` compares.
#pragma once

#include <string>
#include <vector>

#include "analyze/api.h"
#include "support/result.h"

namespace vramscope::cli {

struct DiffSides {
  std::vector<std::string> names;
  std::vector<analyze::Engine> engines;
  std::string about_ranks;  // a sentence; empty for runs of one process
};

// One run with several ranks: its typical rank and the one farthest from it. Several runs: each as a whole, or, if they have
// several ranks, the rank that changed most from the first to the last run.
Result<DiffSides> diff_sides(const std::vector<std::string>& places);

}  // namespace vramscope::cli
