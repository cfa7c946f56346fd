#include "analyze/verdict/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "analyze/labels.h"
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

Bytes distance(Bytes a, Bytes b) { return a > b ? a - b : b - a; }

// The process in the middle, and whether another one is far from it.
struct Standing {
  std::size_t typical = 0, farthest = 0;
  bool stands_out = false;
};

Standing standing_of(const std::vector<Bytes>& peaks) {
  std::vector<std::size_t> by_peak(peaks.size());
  std::iota(by_peak.begin(), by_peak.end(), std::size_t{0});
  std::ranges::stable_sort(by_peak, {}, [&](std::size_t i) { return peaks[i]; });
  Standing out{.typical = by_peak[(peaks.size() - 1) / 2]};
  const Bytes median = peaks[out.typical];
  const auto farthest = std::ranges::max_element(peaks, {}, [&](Bytes peak) { return distance(peak, median); });
  out.farthest = static_cast<std::size_t>(farthest - peaks.begin());
  out.stands_out = distance(*farthest, median) > median * kAlikePercent / 100;
  return out;
}

std::string name_of(const Process& process) { return process.rank ? fmt::format("rank {}", *process.rank) : process.name; }

std::string sentence_of(std::span<const Process> processes, std::span<const std::uint64_t> order) {
  const std::string recorded = support::format_plural(processes.size(), "process was recorded", "processes were recorded");
  const auto troubled = static_cast<std::uint64_t>(
      std::ranges::count_if(processes, [](const Process& p) { return !p.readable || !p.trouble.empty(); }));
  const Process& first = processes[order.front()];
  if (troubled > 0)
    return fmt::format(
        "{}; {} attention: {}{}.", recorded,
        troubled == 1 ? name_of(first) + " needs" : fmt::format("{} of them need", support::format_count(troubled)),
        !first.readable           ? "it cannot be read"
        : first.trouble == kGrows ? "memory grows"
                                  : std::string_view(first.trouble),
        troubled == 1 ? "" : " in " + name_of(first));
  std::vector<Bytes> peaks;
  for (const Process& process : processes) peaks.push_back(process.peak);
  const Standing standing = standing_of(peaks);
  const std::string typical = support::format_size(peaks[standing.typical]);
  if (!standing.stands_out) return fmt::format("{}; none stands out, a typical one peaks at {}.", recorded, typical);
  return fmt::format("{}; {} stands out: it peaks at {}, a typical one at {}.", recorded, name_of(processes[standing.farthest]),
                     support::format_size(peaks[standing.farthest]), typical);
}

const RankPeak* find(const RanksOfRun& run, std::int64_t rank) {
  const auto found = std::ranges::find(run.ranks, rank, &RankPeak::rank);
  return found == run.ranks.end() ? nullptr : &*found;
}

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
  std::vector<Bytes> peaks;
  for (const RankPeak& rank : ranks) peaks.push_back(rank.peak_bytes);
  const Standing standing = standing_of(peaks);

  Ranks out;
  out.typical = standing.typical;
  out.farthest = standing.farthest;
  if (standing.stands_out) out.stands_out = ranks[standing.farthest].rank;
  out.ranks = std::move(ranks);
  out.sentence = sentence_of(out);
  return out;
}

Processes compare_processes(std::span<const Process> processes) {
  Processes out;
  if (processes.empty()) return out;
  std::vector<Bytes> peaks;
  for (const Process& process : processes)
    if (process.readable) peaks.push_back(process.peak);
  const Bytes median = peaks.empty() ? 0 : peaks[standing_of(peaks).typical];
  // Verdicts, files that cannot be read, the rest.
  const auto urgency = [](const Process& p) { return !p.trouble.empty() ? 0 : !p.readable ? 1 : 2; };
  out.order.resize(processes.size());
  std::iota(out.order.begin(), out.order.end(), std::uint64_t{0});
  std::ranges::stable_sort(out.order, [&](std::uint64_t i, std::uint64_t j) {
    const Process &a = processes[i], &b = processes[j];
    if (urgency(a) != urgency(b)) return urgency(a) < urgency(b);
    if (distance(a.peak, median) != distance(b.peak, median)) return distance(a.peak, median) > distance(b.peak, median);
    return a.rank < b.rank;
  });
  out.sentence = sentence_of(processes, out.order);
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
