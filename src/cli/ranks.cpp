#include "cli/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "support/units.h"
#include "trace/reader.h"

namespace vramscope::cli {

namespace {

std::optional<std::int64_t> g_chosen;

constexpr std::string_view kRank = "rank";
constexpr std::string_view kRole = "role";  // of a helper, which has its rank's environment and is none

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint64_t peak_of(const analyze::Summary& summary) {
  const analyze::PoolSummary* const pool = analyze::main_pool(summary);
  return pool != nullptr ? pool->peak_bytes : summary.driver.peak_bytes;
}

}  // namespace

void choose_rank(std::optional<std::int64_t> rank) { g_chosen = rank; }

bool rank_is_chosen() { return g_chosen.has_value(); }

std::optional<std::int64_t> rank_in(const std::filesystem::path& trace) {
  const auto reader = trace::Reader::open(trace);
  if (!reader) return std::nullopt;
  const auto& strings = reader->dictionaries().strings;
  if (std::ranges::find(strings, kRank) == strings.end()) return std::nullopt;
  const auto text = [&](trace::StringId id) -> std::string_view {
    const auto index = static_cast<std::size_t>(id);
    return index < strings.size() ? std::string_view(strings[index]) : std::string_view();
  };
  // The newest word wins: what torch.distributed says comes after the launcher's environment. Both are told before the first
  // step; while a program starts, a chunk is written every second, however few events it has.
  constexpr std::size_t kChunksOfStart = 600;
  std::optional<std::int64_t> found;
  for (std::size_t i = 0; i < std::min(reader->chunks(), kChunksOfStart); ++i) {
    const auto chunk = reader->chunk(i);
    if (!chunk) continue;
    for (std::size_t row = 0; row < chunk->tables.setting.key.size(); ++row) {
      const std::string_view key = text(chunk->tables.setting.key[row]);
      if (key == kRole) return std::nullopt;
      if (key == kRank) found = number(text(chunk->tables.setting.value[row]));
    }
  }
  return found;
}

Result<std::vector<std::filesystem::path>> of_chosen_rank(std::vector<std::filesystem::path> traces) {
  if (!g_chosen) return traces;
  std::vector<std::int64_t> known;
  std::vector<std::filesystem::path> chosen;
  for (const auto& trace : traces) {
    const auto rank = rank_in(trace);
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

std::optional<std::int64_t> rank_of(const analyze::Summary& summary) {
  if (summary.settings.contains(std::string(kRole))) return std::nullopt;
  const auto found = summary.settings.find(std::string(kRank));
  return found != summary.settings.end() ? number(found->second) : std::nullopt;
}

std::optional<RankComparison> compare_ranks(std::vector<RankPeak> ranks) {
  std::ranges::sort(ranks,
                    [](const RankPeak& a, const RankPeak& b) { return a.rank != b.rank ? a.rank < b.rank : a.peak > b.peak; });
  const auto again = std::ranges::unique(ranks, {}, &RankPeak::rank);
  ranks.erase(again.begin(), again.end());
  if (ranks.size() < 2) return std::nullopt;
  std::vector<std::size_t> by_peak(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) by_peak[i] = i;
  std::ranges::stable_sort(by_peak, {}, [&](std::size_t i) { return ranks[i].peak; });

  RankComparison out;
  out.typical = by_peak[(ranks.size() - 1) / 2];
  const std::uint64_t median = ranks[out.typical].peak;
  const auto distance = [&](const RankPeak& r) { return r.peak > median ? r.peak - median : median - r.peak; };
  const auto farthest = std::ranges::max_element(ranks, {}, distance);
  out.farthest = static_cast<std::size_t>(farthest - ranks.begin());
  // Ranks do the same work: a fiftieth apart is more than allocators differ by chance.
  out.stands_out = distance(*farthest) > median / 50;
  out.ranks = std::move(ranks);
  return out;
}

std::optional<RankComparison> compare_ranks(const std::vector<const analyze::Summary*>& summaries) {
  std::vector<RankPeak> ranks;
  for (const analyze::Summary* summary : summaries)
    if (const auto rank = rank_of(*summary)) {
      const analyze::PoolSummary* const pool = analyze::main_pool(*summary);
      ranks.push_back({*rank, peak_of(*summary), pool != nullptr ? pool->ooms : 0});
    }
  return compare_ranks(std::move(ranks));
}

std::string RankComparison::sentence() const {
  const std::string median = support::format_size(ranks[typical].peak);
  if (!stands_out) return fmt::format("The {} ranks have the same peak, within 2 %: {}.", ranks.size(), median);
  const RankPeak& odd = ranks[farthest];
  return fmt::format("Rank {} stands out: {} at its peak, the others around {}.", odd.rank, support::format_size(odd.peak),
                     median);
}

std::string rank_text(const RankComparison& ranks) {
  std::string text = ranks.sentence() + "\n  rank  peak\n";
  for (const RankPeak& r : ranks.ranks)
    text += fmt::format("  {:>4}  {}{}\n", r.rank, support::format_size(r.peak), r.ooms > 0 ? ", out of memory" : "");
  return text + "\n";
}

void rank_json(const RankComparison& ranks, support::JsonWriter& json) {
  json.begin_object().key("sentence").value(ranks.sentence());
  if (ranks.stands_out) json.key("stands_out").value(ranks.ranks[ranks.farthest].rank);
  json.key("ranks").begin_array();
  for (const RankPeak& r : ranks.ranks)
    json.begin_object().key("rank").value(r.rank).key("peak_bytes").value(r.peak).key("ooms").value(r.ooms).end_object();
  json.end_array().end_object();
}

}  // namespace vramscope::cli
