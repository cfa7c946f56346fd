#include "cli/show/ranks.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/verdict/ranks.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

std::optional<std::int64_t> g_chosen;

}  // namespace

void choose_rank(std::optional<std::int64_t> rank) { g_chosen = rank; }

bool rank_is_chosen() { return g_chosen.has_value(); }

Result<std::vector<std::filesystem::path>> of_chosen_rank(std::vector<std::filesystem::path> traces) {
  if (!g_chosen) return traces;
  std::vector<std::int64_t> known;
  std::vector<std::filesystem::path> chosen;
  for (const auto& trace : traces) {
    const auto rank = analyze::rank_in(trace);
    if (!rank) continue;
    known.push_back(*rank);
    if (*rank == *g_chosen) chosen.push_back(trace);
  }
  if (!chosen.empty()) return chosen;
  if (known.empty())
    return fail(fmt::format("--rank {}: no process of this run has a rank; it was not started by a launcher", *g_chosen));
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return fail(fmt::format("--rank {}: no such rank in this run; there are {}", *g_chosen, fmt::join(known, ", ")));
}

std::string rank_text(const analyze::Ranks& ranks) {
  std::string text = ranks.sentence + "\n\n  RANK        PEAK\n";
  for (const analyze::RankPeak& r : ranks.ranks)
    text += fmt::format("  {:>4}  {:>10}{}\n", r.rank, support::format_size(r.peak_bytes), r.ooms > 0 ? ", out of memory" : "");
  return text + "\n";
}

}  // namespace vramscope::cli
