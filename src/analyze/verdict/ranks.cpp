#include "analyze/verdict/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "analyze/query/state.h"
#include "support/units.h"
#include "trace/reader.h"

namespace vramscope::analyze {

namespace {

constexpr std::string_view kRank = "rank";
constexpr std::string_view kRole = "role";  // of a helper, which has the environment of a rank but is not one

// Ranks do the same work: more than this percentage apart is more than allocators differ by chance.
constexpr std::uint64_t kAlikePercent = 2;

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string sentence_of(const Ranks& ranks) {
  const std::string median = support::format_size(ranks.ranks[ranks.typical].peak_bytes);
  if (!ranks.stands_out)
    return fmt::format("The {} ranks have the same peak, within {} %: {}.", ranks.ranks.size(), kAlikePercent, median);
  return fmt::format("Rank {} stands out: {} at its peak, the others around {}.", *ranks.stands_out,
                     support::format_size(ranks.ranks[ranks.farthest].peak_bytes), median);
}

const RankPeak* find(const RanksOfRun& run, std::int64_t rank) {
  const auto found = std::ranges::find(run.ranks, rank, &RankPeak::rank);
  return found == run.ranks.end() ? nullptr : &*found;
}

Bytes distance(Bytes a, Bytes b) { return a > b ? a - b : b - a; }

}  // namespace

std::optional<std::int64_t> rank_of(const std::function<std::string_view(std::string_view)>& setting) {
  return setting(kRole).empty() ? number(setting(kRank)) : std::nullopt;
}

std::optional<std::int64_t> rank_in(const std::filesystem::path& trace) {
  const auto reader = trace::Reader::open(trace);
  if (!reader) return std::nullopt;
  const auto& strings = reader->dictionaries().strings;
  if (std::ranges::find(strings, kRank) == strings.end()) return std::nullopt;
  const auto text = [&](trace::StringId id) -> std::string_view {
    const auto index = static_cast<std::size_t>(id);
    return index < strings.size() ? std::string_view(strings[index]) : std::string_view();
  };
  // The newest report wins: that of torch.distributed comes after the launcher's environment. Both come before the first
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

RankPeak rank_peak(std::int64_t rank, const Engine& engine) {
  const Engine::State& s = engine.state();
  RankPeak out{.rank = rank};
  if (s.main >= 0) out.peak_bytes = s.places[static_cast<std::size_t>(s.main)].peak;
  out.ooms = s.failures();
  return out;
}

std::optional<Ranks> compare_ranks(std::vector<RankPeak> ranks) {
  std::ranges::sort(ranks, [](const RankPeak& a, const RankPeak& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.peak_bytes > b.peak_bytes;
  });
  const auto again = std::ranges::unique(ranks, {}, &RankPeak::rank);
  ranks.erase(again.begin(), again.end());
  if (ranks.size() < 2) return std::nullopt;
  std::vector<std::size_t> by_peak(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) by_peak[i] = i;
  std::ranges::stable_sort(by_peak, {}, [&](std::size_t i) { return ranks[i].peak_bytes; });

  Ranks out;
  out.typical = by_peak[(ranks.size() - 1) / 2];
  const Bytes median = ranks[out.typical].peak_bytes;
  const auto off = [&](const RankPeak& r) { return distance(r.peak_bytes, median); };
  const auto farthest = std::ranges::max_element(ranks, {}, off);
  out.farthest = static_cast<std::uint64_t>(farthest - ranks.begin());
  if (off(*farthest) > median * kAlikePercent / 100) out.stands_out = farthest->rank;
  out.ranks = std::move(ranks);
  out.sentence = sentence_of(out);
  return out;
}

std::optional<RankChange> most_changed_rank(const std::vector<RanksOfRun>& runs) {
  std::optional<std::int64_t> found;
  Bytes most = 0;
  for (const RankPeak& each : runs.front().ranks) {
    if (!std::ranges::all_of(runs, [&](const RanksOfRun& run) { return find(run, each.rank) != nullptr; })) continue;
    const Bytes change = distance(find(runs.back(), each.rank)->peak_bytes, each.peak_bytes);
    if (!found || change > most) found = each.rank;
    most = std::max(most, change);
  }
  if (!found) return std::nullopt;
  RankChange out{*found, most > 0 ? fmt::format("Rank {} changed most.", *found) : "No rank's peak changed."};
  for (const RanksOfRun* run : {&runs.front(), &runs.back()})
    if (const auto compared = compare_ranks(run->ranks)) out.sentence += fmt::format(" {}: {}", run->run, compared->sentence);
  return out;
}

}  // namespace vramscope::analyze
