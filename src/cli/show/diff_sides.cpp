#include "cli/show/diff_sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "analyze/run_name.h"
#include "analyze/verdict/ranks.h"
#include "cli/foreign.h"
#include "cli/run_folder.h"
#include "cli/show/answer.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

struct Run {
  std::string name;
  std::optional<analyze::Engine> whole;           // of one process
  std::map<std::int64_t, analyze::Engine> ranks;  // of several
};

analyze::Bytes peak_of(const analyze::Engine& engine) { return analyze::rank_peak(0, engine).peak_bytes; }

// Of any rank.
Result<std::vector<std::filesystem::path>> trace_itself(const std::filesystem::path& file) {
  const auto trace = as_trace(file);
  if (!trace) return std::unexpected(trace.error());
  return std::vector{*trace};
}

// `beside_a_folder`: --rank chooses in the folder; a trace named beside it is meant whatever its rank.
Result<Run> open_run(const std::string& place, bool beside_a_folder) {
  Run run;
  const std::filesystem::path path = place;
  run.name = analyze::run_name(path);
  const bool as_named = beside_a_folder && std::filesystem::is_regular_file(path);
  const auto traces = as_named ? trace_itself(path) : traces_of(path);
  if (!traces) return std::unexpected(traces.error());
  for (const auto& trace : *traces) {
    const auto rank = traces->size() > 1 ? analyze::rank_in(trace) : std::nullopt;
    if (traces->size() > 1 && !rank) continue;  // a data loader, a launcher
    auto engine = analyze::Engine::open(trace);
    if (!engine) return std::unexpected(engine.error());
    say_damage(trace, engine->overview().damage);
    say_source(engine->overview());
    if (!rank) {
      run.whole = std::move(*engine);
    } else if (const auto known = run.ranks.find(*rank); known == run.ranks.end()) {
      run.ranks.emplace(*rank, std::move(*engine));
    } else if (peak_of(*engine) > peak_of(known->second)) {  // started again
      known->second = std::move(*engine);
    }
  }
  if (!run.whole && run.ranks.empty())
    return fail(fmt::format("{}: {} traces without a rank; name one of them", place, traces->size()));
  if (run.ranks.size() == 1) {
    run.whole = std::move(run.ranks.begin()->second);
    run.ranks.clear();
  }
  return run;
}

std::vector<analyze::RankPeak> peaks_of(const Run& run) {
  std::vector<analyze::RankPeak> out;
  for (const auto& [rank, engine] : run.ranks) out.push_back(analyze::rank_peak(rank, engine));
  return out;
}

Result<DiffSides> ranks_of_one(Run run) {
  const auto compared = analyze::compare_ranks(peaks_of(run));
  if (!compared) return fail(fmt::format("{}: only one rank; name at least two traces", run.name));
  DiffSides out;
  out.about_ranks = compared->sentence;
  const std::uint64_t other = compared->farthest != compared->typical ? compared->farthest : compared->typical == 0 ? 1 : 0;
  for (const std::uint64_t side : {compared->typical, other}) {
    const std::int64_t rank = compared->ranks[side].rank;
    out.names.push_back(fmt::format("rank {}", rank));
    out.engines.push_back(std::move(run.ranks.at(rank)));
  }
  return out;
}

}  // namespace

Result<DiffSides> diff_sides(const std::vector<std::string>& places) {
  std::vector<Run> runs;
  const bool folders = std::ranges::any_of(places, [](const std::string& place) { return std::filesystem::is_directory(place); });
  for (const std::string& place : places) {
    auto run = open_run(place, folders);
    if (!run) return std::unexpected(run.error());
    runs.push_back(std::move(*run));
  }
  if (runs.size() == 1 && !runs.front().ranks.empty()) return ranks_of_one(std::move(runs.front()));
  const bool with_ranks = std::ranges::all_of(runs, [](const Run& run) { return !run.ranks.empty(); });
  if (!with_ranks)
    for (const Run& run : runs)
      if (!run.ranks.empty())
        return fail(fmt::format("{}: {} ranks, but another run has none; choose one with --rank, or name its trace", run.name,
                                run.ranks.size()));
  DiffSides out;
  std::optional<std::int64_t> rank;
  if (with_ranks && runs.size() > 1) {
    std::vector<analyze::RanksOfRun> all;
    for (const Run& run : runs) all.push_back({run.name, peaks_of(run)});
    const auto changed = analyze::most_changed_rank(all);
    if (!changed) return fail("these runs have no rank in common; name two traces");
    rank = changed->rank;
    out.about_ranks = changed->sentence;
  }
  for (Run& run : runs) {
    out.names.push_back(rank ? fmt::format("{} rank {}", run.name, *rank) : run.name);
    out.engines.push_back(rank ? std::move(run.ranks.at(*rank)) : std::move(*run.whole));
  }
  return out;
}

}  // namespace vramscope::cli
