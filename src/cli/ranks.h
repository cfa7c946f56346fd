// Runs of several processes: which one is which rank, and which one is not like the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analyze/summary.h"
#include "support/result.h"

namespace vramscope::cli {

// What --rank asked for; every verb has it. traces_of() gives that rank's traces only.
void choose_rank(std::optional<std::int64_t> rank);

// The chosen ones of these traces. Processes without a rank (data loaders, launchers) belong to none.
Result<std::vector<std::filesystem::path>> of_chosen_rank(std::vector<std::filesystem::path> traces);

std::optional<std::int64_t> rank_of(const analyze::Summary& summary);

// A table of the ranks with their peaks, and a sentence that names the one that stands out. Empty with fewer than two ranks.
std::string rank_text(const std::vector<const analyze::Summary*>& summaries);

}  // namespace vramscope::cli
