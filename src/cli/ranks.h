// Runs of several processes: which one is which rank, and which one is not like the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analyze/summary.h"
#include "support/json_writer.h"
#include "support/result.h"

namespace vramscope::cli {

// What --rank asked for; every verb has it. traces_of() gives that rank's traces only.
void choose_rank(std::optional<std::int64_t> rank);

// The chosen ones of these traces. Processes without a rank (data loaders, launchers) belong to none.
Result<std::vector<std::filesystem::path>> of_chosen_rank(std::vector<std::filesystem::path> traces);

bool rank_is_chosen();

// As the trace says, or none.
std::optional<std::int64_t> rank_in(const std::filesystem::path& trace);
std::optional<std::int64_t> rank_of(const analyze::Summary& summary);

struct RankPeak {
  std::int64_t rank = 0;
  std::uint64_t peak = 0;
  std::uint64_t ooms = 0;
};

// All ranks of a run beside each other.
struct RankComparison {
  std::vector<RankPeak> ranks;  // one for each, by number; of a rank that was started again the larger peak
  std::size_t typical = 0;      // the one with the median peak
  std::size_t farthest = 0;     // the one farthest from it
  bool stands_out = false;      // whether `farthest` is more than 2 % away
  std::string sentence() const;
};
// None with fewer than two ranks.
std::optional<RankComparison> compare_ranks(std::vector<RankPeak> ranks);
std::optional<RankComparison> compare_ranks(const std::vector<const analyze::Summary*>& summaries);

// The sentence and a table.
std::string rank_text(const RankComparison& ranks);
void rank_json(const RankComparison& ranks, support::JsonWriter& json);

}  // namespace vramscope::cli
