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

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The newest word of the trace about its rank. Launchers set it before the first step, so the first chunks tell.
std::optional<std::int64_t> rank_in(const std::filesystem::path& path) {
  const auto reader = trace::Reader::open(path);
  if (!reader) return std::nullopt;
  const auto& strings = reader->dictionaries().strings;
  const auto text = [&](trace::StringId id) -> std::string_view {
    const auto index = static_cast<std::size_t>(id);
    return index < strings.size() ? std::string_view(strings[index]) : std::string_view();
  };
  std::optional<std::int64_t> found;
  for (std::size_t i = 0; i < std::min<std::size_t>(reader->chunks(), 4); ++i) {
    const auto chunk = reader->chunk(i);
    if (!chunk) continue;
    for (std::size_t row = 0; row < chunk->tables.setting.key.size(); ++row)
      if (text(chunk->tables.setting.key[row]) == kRank) found = number(text(chunk->tables.setting.value[row]));
  }
  return found;
}

std::uint64_t peak_of(const analyze::Summary& summary) {
  const analyze::PoolSummary* const pool = analyze::main_pool(summary);
  return pool != nullptr ? pool->peak_bytes : summary.driver.peak_bytes;
}

}  // namespace

void choose_rank(std::optional<std::int64_t> rank) { g_chosen = rank; }

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
  const auto found = summary.settings.find(std::string(kRank));
  return found != summary.settings.end() ? number(found->second) : std::nullopt;
}

std::string rank_text(const std::vector<const analyze::Summary*>& summaries) {
  struct Entry {
    std::int64_t rank;
    std::uint64_t peak;
    std::uint64_t ooms;
  };
  std::vector<Entry> entries;
  for (const analyze::Summary* summary : summaries)
    if (const auto rank = rank_of(*summary)) {
      const analyze::PoolSummary* const pool = analyze::main_pool(*summary);
      entries.push_back({*rank, peak_of(*summary), pool != nullptr ? pool->ooms : 0});
    }
  if (entries.size() < 2) return {};
  std::ranges::sort(entries, {}, &Entry::rank);
  std::vector<std::uint64_t> peaks;
  peaks.reserve(entries.size());
  for (const Entry& entry : entries) peaks.push_back(entry.peak);
  std::ranges::sort(peaks);
  const std::uint64_t median = peaks[(peaks.size() - 1) / 2];

  const auto distance = [&](const Entry& entry) { return entry.peak > median ? entry.peak - median : median - entry.peak; };
  const Entry& odd = *std::ranges::max_element(entries, {}, distance);
  std::string text;
  // Ranks do the same work: a fiftieth apart is more than allocators differ by chance.
  if (distance(odd) > median / 50)
    text = fmt::format("Rank {} stands out: {} at its peak, the others around {}.\n", odd.rank, support::format_size(odd.peak),
                       support::format_size(median));
  else
    text = fmt::format("The {} ranks have the same peak, within 2 %: {}.\n", entries.size(), support::format_size(median));
  text += "  rank  peak\n";
  for (const Entry& entry : entries)
    text += fmt::format("  {:>4}  {}{}\n", entry.rank, support::format_size(entry.peak), entry.ooms > 0 ? ", out of memory" : "");
  return text + "\n";
}

}  // namespace vramscope::cli
