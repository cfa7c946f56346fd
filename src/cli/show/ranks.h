// Runs of several processes: the chosen rank, and all of them as a table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analyze/answers.h"
#include "support/result.h"

namespace vramscope::cli {

// What --rank asked for; every verb has it. traces_of() gives that rank's traces only.
void choose_rank(std::optional<std::int64_t> rank);

// The chosen ones of these traces. Processes without a rank (data loaders, launchers) belong to none.
Result<std::vector<std::filesystem::path>> of_chosen_rank(std::vector<std::filesystem::path> traces);

bool rank_is_chosen();

// The sentence and a table.
std::string rank_text(const analyze::Ranks& ranks);

}  // namespace vramscope::cli
