// What was recorded, in a handful of figures.
#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "analyze/absent.h"
#include "analyze/api.h"
#include "analyze/attribute/python_side.h"
#include "analyze/build.h"
#include "analyze/index/pool_figures.h"
#include "analyze/query/state.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_count;
using support::format_size;

constexpr std::size_t kMostDevices = 256;  // a damaged file may claim any number

std::string text_of(const std::vector<std::pair<std::string, std::string>>& settings, std::string_view key) {
  const auto found = std::ranges::lower_bound(settings, key, {}, [](const auto& pair) { return std::string_view(pair.first); });
  return found != settings.end() && found->first == key ? found->second : std::string();
}

std::optional<std::int64_t> number_of(const std::vector<std::pair<std::string, std::string>>& settings, std::string_view key) {
  const std::string text = text_of(settings, key);
  std::int64_t value = 0;
  if (text.empty() || std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

template <typename Value>
std::vector<std::pair<std::string, Value>> pairs_of(const std::map<std::string, Value>& from) {
  return {from.begin(), from.end()};
}

std::vector<DeviceSummary> devices_of(const Store& store) {
  std::vector<DeviceSummary> out;
  const auto device = [&](std::int64_t index) -> DeviceSummary* {
    const auto found = std::ranges::find(out, index, &DeviceSummary::device);
    if (found != out.end()) return &*found;
    if (out.size() == kMostDevices) return nullptr;
    return &out.emplace_back(DeviceSummary{.device = index, .peak_process_bytes = {}, .context_bytes = {}});
  };
  for (const auto& each : store.contexts)
    if (DeviceSummary* row = device(each.row.device)) {
      row->total_bytes = std::max(row->total_bytes, each.row.total);
      if (each.row.bytes != trace::kNone) row->context_bytes = row->context_bytes.value_or(0) + each.row.bytes;
    }
  for (const auto& each : store.device_samples)
    if (DeviceSummary* row = device(each.row.device)) {
      ++row->samples;
      row->total_bytes = each.row.total;
      row->peak_used_bytes = std::max(row->peak_used_bytes, each.row.used);
      if (each.row.process != trace::kNone)
        row->peak_process_bytes = std::max(row->peak_process_bytes.value_or(0), each.row.process);
    }
  std::ranges::sort(out, {}, &DeviceSummary::device);
  return out;
}

HostSummary host_of(const Store& store) {
  HostSummary out;
  for (const auto& each : store.host_samples) {
    ++out.samples;
    out.peak_rss_bytes = std::max(out.peak_rss_bytes, each.row.rss);
    out.peak_pinned_bytes = std::max(out.peak_pinned_bytes, each.row.pinned);
  }
  return out;
}

Summary summary_of(const Store& store, const PoolFigures& figures) {
  Summary out;
  out.file = store.reader().path().string();
  out.duration_us = store.duration_us();
  out.duration_s = static_cast<double>(out.duration_us) / 1e6;
  out.events = store.events_read();
  out.lost = figures.lost_events;
  std::map<std::string, std::uint64_t> losses;
  for (const auto& each : store.lost) losses[std::string(trace::name_of(each.row.kind))] += each.row.count;
  out.losses = pairs_of(losses);
  const auto cut = std::ranges::count_if(store.dictionaries().stacks, [](const trace::Stack& stack) { return stack.cut > 0; });
  if (cut > 0) out.cut_stacks = static_cast<std::uint64_t>(cut);
  std::uint64_t thinned = 0;
  for (const auto& each : store.omitted) thinned += each.row.allocs;
  if (thinned > 0) out.thinned_allocs = thinned;
  for (std::size_t i = 0; i < figures.pools.size(); ++i)
    if (is_used(figures.pools[i]) && store.dictionaries().pools[i].level != trace::Level::driver)
      out.pools.push_back(figures.pools[i]);
  std::ranges::stable_sort(out.pools, std::ranges::greater{}, &PoolSummary::peak_bytes);
  out.driver = driver_figures(store, figures);
  out.device = devices_of(store);
  out.host = host_of(store);
  for (const auto& [key, value] : store.settings) out.settings.emplace_back(key, value);
  out.process.pid = static_cast<std::uint64_t>(number_of(out.settings, "process.pid").value_or(0));
  out.process.command = text_of(out.settings, "process.command");
  out.process.exit_code = number_of(out.settings, "process.exit_code");
  out.process.signal = number_of(out.settings, "process.signal");
  out.ended = !store.reader().damage().truncated;
  if (std::string damage = damage_of(store); !damage.empty()) out.damage = std::move(damage);
  out.sentence = summary_sentence(out);
  return out;
}

// "44.7 MiB live at the peak in bfc, which holds 66.0 MiB"
std::string peak_words(const Summary& summary) {
  const PoolSummary* pool = main_pool(summary);
  if (pool == nullptr)
    return summary.driver.allocs > 0
               ? fmt::format("{} allocated from the driver at the peak", format_size(summary.driver.peak_bytes))
               : std::string(kNothingRecorded);
  std::string text =
      fmt::format("{}{} live at the peak in {}", pool->order_exact ? "" : "≥ ", format_size(pool->peak_bytes), pool->name);
  if (pool->region_bytes_peak > 0)
    text += fmt::format(", which holds {}{}", pool->before_bytes > 0 ? "at least " : "", format_size(pool->region_bytes_peak));
  if (pool->ooms > 0) text += fmt::format("; out of memory {}", pool->ooms == 1 ? "once" : fmt::format("{} times", pool->ooms));
  return text;
}

// "19,284 events in 5.2 s, none lost."
std::string recorded_words(const Summary& summary) {
  std::string text = fmt::format("{} in {}", support::format_plural(summary.events, "event", "events"),
                                 support::format_duration(summary.duration_us));
  const char* rest = !summary.damage ? ", none lost." : ", and part of the trace cannot be read.";
  return text + (summary.lost > 0 ? fmt::format(", {} lost.", format_count(summary.lost)) : rest);
}

// " Recorded without the Python hooks for ...", after another sentence; empty if they were there.
std::string missing_words(const Summary& summary) {
  const std::string unwatched = unwatched_frameworks([&](std::string_view key) { return text_of(summary.settings, key); });
  if (unwatched.empty()) return {};
  std::string missing = without_python_side(unwatched);
  missing.front() = 'R';
  return fmt::format(" {}.", missing);
}

}  // namespace

std::string damage_of(const Store& store) {
  const std::string& damage = store.reader().damage().message;
  if (store.counts.lost_chunks == 0) return damage;
  return fmt::format("{}{} of {} chunks could not be read", damage.empty() ? "" : damage + "; ", store.counts.lost_chunks,
                     store.chunks.size());
}

const PoolSummary* main_pool(const Summary& summary) {
  const auto better = [](const PoolSummary& a, const PoolSummary& b) {
    if ((a.device >= 0) != (b.device >= 0)) return a.device < 0;
    return a.peak_bytes < b.peak_bytes;
  };
  const auto best = std::ranges::max_element(summary.pools, better);
  return best == summary.pools.end() ? nullptr : &*best;
}

std::string figures_sentence(const Summary& summary) { return peak_words(summary) + "; " + recorded_words(summary); }

std::string summary_sentence(const Summary& summary) { return figures_sentence(summary) + missing_words(summary); }

std::string summary_sentence(const Summary& summary, std::string_view headline) {
  return fmt::format("{} {}{}", headline, recorded_words(summary), missing_words(summary));
}

Result<Summary> summarize(const std::filesystem::path& trace) try {
  const auto store = read_store(trace, 1);
  if (!store) return std::unexpected(store.error());
  return summary_of(*store, pool_figures(*store));
} catch (const std::bad_alloc&) {
  return not_enough_memory(trace);
}

Summary Engine::summary(std::string_view where) const {
  Summary out = summary_of(state_->store, state_->figures);
  out.overview = overview();
  out.steps = steps(-1, where).value_or(Steps{});
  out.phases = phases(-1, where).value_or(std::vector<Phase>{});
  out.categories = live({.at = "steady", .where = std::string(where)}).value_or(Live{});
  out.findings = findings();
  if (out.overview->main_place >= 0) out.sentence = headline(*out.overview, *out.findings) + missing_words(out);
  return out;
}

}  // namespace vramscope::analyze
