#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analyze/absent.h"
#include "analyze/attribute/python_side.h"
#include "analyze/labels.h"
#include "analyze/query/block_text.h"
#include "analyze/query/state.h"
#include "analyze/verdict/peak_rise.h"
#include "analyze/verdict/ranks.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

// Our totals against the framework's own counters, wherever the trace has them.
std::string cross_check(const Engine::State& s, const Engine& engine) {
  const Store& store = s.store;
  const auto& pools = store.dictionaries().pools;
  std::string out;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    if (pools[p].level != trace::Level::tensor) continue;
    const Stamped<trace::Totals>* totals = nullptr;
    for (const auto& t : store.totals)
      if (static_cast<std::size_t>(t.row.pool) == p) totals = &t;
    // Where events are missing the allocator's count is what we show; there is nothing to compare it with.
    if (totals == nullptr || s.figures.counted[p] != 0) continue;
    for (std::size_t i = 0; i < s.places.size(); ++i) {
      const Place& place = s.places[i];
      if (place.pools.size() != 1 || place.pools[0] != p) continue;
      std::string_view name = store.text(pools[p].name);
      Bytes live = engine.live_at(totals->pos, static_cast<int>(i));
      if (place.peak == totals->row.peak && live == totals->row.live)
        out = out.empty() ? fmt::format("Peak and live bytes of {} equal the allocator's own, to the byte", name) : out;
      else
        return fmt::format("{}: peak {} here, {} by the allocator's own count", name, format_size(place.peak),
                           format_size(totals->row.peak));
    }
  }
  return out;
}

// The lowest peak among the steady steps of the main place.
Bytes lowest_steady(const Engine::State& s) {
  Bytes low = ~Bytes{0};
  for (std::size_t i = s.steady.first; s.steady.has && i <= s.steady.last && i < s.measures.size(); ++i)
    if (s.store.steps[i].kind == s.store.steps[s.steady.first].kind) low = std::min(low, s.measures[i].peak);
  return low;
}

Bytes before_recording(const Engine::State& s, const Place& place) {
  Bytes sum = 0;
  for (const std::uint32_t pool : place.pools)
    if (pool < s.figures.pools.size()) sum += s.figures.pools[pool].before_bytes;
  return sum;
}

std::string sentence_of(const Engine::State& s) {
  if (s.main < 0) return fmt::format("{}.", kNothingRecorded);
  const Place& p = s.places[static_cast<std::size_t>(s.main)];
  const std::string device = label_of_device(p);
  const bool incomplete = s.figures.lost_events > 0 || p.peak != p.peak_known;
  if (const Bytes before = before_recording(s, p); before > 0 && s.figures.lost_events == 0)
    return fmt::format("The run needs at most {} on {}, {} of it from before the recording.", format_size(p.peak), device,
                       format_size(before));
  if (incomplete) return fmt::format("The run needs at most {} on {}.", format_size(p.peak), device);
  std::string at_least = p.order_exact ? "" : "at least ";
  std::string pool;
  if (p.regions_peak > 2 * std::max<Bytes>(p.peak, 1)) pool = fmt::format("; the pool has held {}", format_size(p.regions_peak));
  if (!p.steady) return fmt::format("The run needs {}{} on {}{}.", at_least, format_size(p.peak), device, pool);
  const char* who = s.store.name(s.store.steps[s.steady.first].kind) == "train" ? "Training" : "The run";
  if (const auto rise = peak_rise(s, p))
    return fmt::format("{} needs {}{} on {}. T{}{}.", who, at_least, format_size(p.steady_peak), device,
                       in_words(*rise, p).substr(1), pool);
  const Bytes low = lowest_steady(s);
  if (low < p.peak - p.peak / 20)
    return fmt::format("{} needs {}{} on {}; its steady steps peak at {} to {}{}.", who, at_least, format_size(p.peak), device,
                       format_size(low), format_size(p.peak), pool);
  return fmt::format("{} needs {}{} on {}, in every steady step{}.", who, at_least, format_size(p.peak), device, pool);
}

std::string missing_text(const Engine::State& s) {
  const Store& store = s.store;
  std::vector<std::string> parts;
  if (const std::uint64_t lost = s.figures.lost_events; lost > 0)
    parts.push_back(fmt::format("{} lost: a block whose free was lost looks live until its address is reused",
                                support::format_plural(lost, "event was", "events were")));
  std::uint64_t left_out = 0;
  for (const auto& each : store.omitted) left_out += each.row.allocs;
  if (left_out > 0)
    parts.push_back(fmt::format("{} with their frees were omitted (--trace-limit): steps without detail show less than they used",
                                support::format_plural(left_out, "allocation", "allocations")));
  for (const Place& place : s.places)
    if (const Bytes before = before_recording(s, place); before > 0)
      parts.push_back(fmt::format("{} on {} was in use when the recording started and is not counted as blocks",
                                  format_size(before), place.name));
  if (const std::string unwatched = unwatched_frameworks([&](std::string_view key) { return setting(store, key); });
      !unwatched.empty())
    parts.push_back(without_python_side(unwatched) +
                    " (record without --no-python, and check the installation with 'vramscope doctor')");
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

Overview Engine::overview() const {
  const State& s = *state_;
  const Store& store = s.store;
  Overview out;
  out.path = store.reader().path().string();
  out.program = setting(store, "process.command");
  out.start_realtime_us = store.reader().start_realtime_us();
  out.duration_us = store.duration_us();
  out.events = store.events_read();
  // A free that did not happen is a free and an allocation in the trace; neither counts.
  out.allocs = store.counts.allocs - store.counts.given_again;
  out.frees = store.counts.frees - std::min(store.counts.frees, store.counts.given_again);
  out.unmatched_frees = store.counts.unmatched_frees;
  out.damage = damage_of(store);
  out.truncated = store.reader().damage().truncated;
  std::map<std::string, std::uint64_t> lost;
  for (const auto& l : store.lost) lost[std::string(trace::name_of(l.row.kind))] += l.row.count;
  for (auto& [what, count] : lost) out.lost.emplace_back(what, count);
  out.missing = missing_text(s);
  for (const auto& [key, value] : store.settings) out.settings.emplace_back(key, value);
  out.places = s.places;
  out.main_place = s.main;
  out.steps_source = source_of_steps(store);
  out.steps = store.steps.size();
  out.ooms = s.failures();
  out.rank = rank_of([&](std::string_view key) { return setting_text(store, key); });
  out.checked = cross_check(s, *this);
  out.sentence = sentence_of(s);
  return out;
}

}  // namespace vramscope::analyze
