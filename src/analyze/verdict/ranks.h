// Runs of several processes: which one is which rank, and which one is not like the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/api.h"

namespace vramscope::analyze {

// As the trace says, or none: data loaders and launchers have no rank. `setting` gives "" for one that is not there.
std::optional<std::int64_t> rank_of(const std::function<std::string_view(std::string_view)>& setting);
// The same from the start of a trace, without opening all of it.
std::optional<std::int64_t> rank_in(const std::filesystem::path& trace);

// The highest peak of a process and its failures.
RankPeak rank_peak(std::int64_t rank, const Engine& engine);

// One of the processes that are shown together.
struct Process {
  std::string name = {};
  std::optional<std::int64_t> rank = {};
  Bytes peak = 0;
  std::string trouble = {};  // a verdict; empty if all is well
  bool readable = true;      // otherwise nothing else is known
};
struct Processes {
  std::string sentence;
  std::vector<std::uint64_t> order;  // indices: trouble first, then what is farthest from the others
};
Processes compare_processes(std::span<const Process> processes);

// None with fewer than two ranks.
std::optional<Ranks> compare_ranks(std::vector<RankPeak> ranks);

// The ranks of one run among several.
struct RanksOfRun {
  std::string run;
  std::vector<RankPeak> ranks;
};
struct RankChange {
  std::int64_t rank = 0;
  std::string sentence;
};
// The rank, among those that all runs have, whose peak changed most from the first run to the last. None without a common rank.
std::optional<RankChange> most_changed_rank(const std::vector<RanksOfRun>& runs);

}  // namespace vramscope::analyze
