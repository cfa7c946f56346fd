#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analyze/autotune.h"
#include "analyze/facts.h"
#include "analyze/state.h"
#include "analyze/step_measure.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

// Our totals against the framework's own counters, wherever the trace has them.
std::string cross_check(const Store& store, const std::vector<Place>& places, const Engine& engine) {
  const auto& words = store.words();
  std::string out;
  for (std::size_t p = 0; p < words.pools.size(); ++p) {
    if (words.pools[p].level != trace::Level::tensor) continue;
    const Stamped<trace::Totals>* totals = nullptr;
    for (const auto& t : store.totals)
      if (static_cast<std::size_t>(t.row.pool) == p) totals = &t;
    if (totals == nullptr) continue;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Place& place = places[i];
      if (place.pools.size() != 1 || place.pools[0] != p) continue;
      std::string_view name = store.text(words.pools[p].name);
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

// What the allocators counted themselves: right where events were lost, and with what was in use before the recording.
struct Counted {
  Bytes peak = 0, before = 0;
};
Counted counted(const Store& store, const Place& place) {
  Counted sum;
  for (std::uint32_t pool : place.pools) {
    Counted last;
    for (const auto& totals : store.totals)
      if (static_cast<std::uint32_t>(totals.row.pool) == pool) last = {totals.row.peak, totals.row.before};
    sum.peak += last.peak;
    sum.before += last.before;
  }
  return sum;
}

std::string sentence_of(const Engine::State& s) {
  if (s.main < 0) return "No allocation was recorded.";
  const Place& p = s.places[static_cast<std::size_t>(s.main)];
  const Counted own = counted(s.store, p);
  if (s.store.lost_events() > 0) return fmt::format("The run needs {} on {} at most.", format_size(own.peak), p.name);
  if (own.before > 0)
    return fmt::format("The run needs {} on {} at most, {} of it from before the recording.", format_size(own.peak), p.name,
                       format_size(own.before));
  std::string at_least = p.order_exact ? "" : "at least ";
  std::string pool;
  if (p.regions_peak > 2 * std::max<Bytes>(p.peak, 1)) pool = fmt::format("; the pool has held {}", format_size(p.regions_peak));
  if (!p.steady) return fmt::format("The run needs {}{} on {}{}.", at_least, format_size(p.peak), p.name, pool);
  const char* who = s.store.name(s.store.steps[s.steady.first].kind) == "train" ? "Training" : "The run";
  if (p.peak > p.steady_peak + p.steady_peak / 50) {
    std::int64_t step = s.step_number(p.peak_at);
    std::string when =
        step > 0 ? fmt::format(" in step {}", step) : fmt::format(" at {}", support::format_duration(s.store.time_of(p.peak_at)));
    const bool evaluation = in_evaluation(s.store, p.peak_at);
    if (evaluation) when = " in an evaluation";
    const bool tuning = !evaluation && autotuning_at_peak(s.store, s.pools(p), p) > 0;
    const char* what = tuning ? "autotuning" : "reached";
    return fmt::format("{} needs {}{} on {}. The {} peak was {}{}{}.", who, at_least, format_size(p.steady_peak), p.name,
                       format_size(p.peak), what, when, pool);
  }
  Bytes low = lowest_steady(s);
  if (low < p.peak - p.peak / 20)
    return fmt::format("{} needs {}{} on {}; its steady steps peak at {} to {}{}.", who, at_least, format_size(p.peak), p.name,
                       format_size(low), format_size(p.peak), pool);
  return fmt::format("{} needs {}{} on {}, in every steady step{}.", who, at_least, format_size(p.peak), p.name, pool);
}

std::string missing_text(const Store& store, const std::vector<Place>& places) {
  std::vector<std::string> parts;
  if (const std::uint64_t lost = store.lost_events(); lost > 0)
    parts.push_back(fmt::format("{} lost: a block whose free is among them looks alive until its address is used again",
                                support::format_plural(lost, "event was", "events were")));
  std::uint64_t left_out = 0;
  for (const auto& each : store.omitted) left_out += each.row.allocs;
  if (left_out > 0)
    parts.push_back(fmt::format("{} with their frees are left out (--trace-limit): steps without detail show less than they used",
                                support::format_plural(left_out, "allocation", "allocations")));
  for (const Place& place : places)
    if (const Bytes before = counted(store, place).before; before > 0)
      parts.push_back(fmt::format("{} on {} were in use when the recording began and are in no figure of blocks",
                                  format_size(before), place.name));
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
  out.events = store.events();
  // A free that did not happen is a free and an allocation in the trace; neither counts.
  out.allocs = store.counts.allocs - store.counts.given_again;
  out.frees = store.counts.frees - std::min(store.counts.frees, store.counts.given_again);
  out.unmatched_frees = store.counts.unmatched_frees;
  out.damage = store.reader().damage().message;
  out.truncated = store.reader().damage().truncated;
  if (store.counts.lost_chunks > 0)
    out.damage = fmt::format("{}{} of {} chunks could not be read", out.damage.empty() ? "" : out.damage + "; ",
                             store.counts.lost_chunks, store.chunks.size());
  std::map<std::string, std::uint64_t> lost;
  for (const auto& l : store.lost) lost[std::string(trace::name_of(l.row.kind))] += l.row.count;
  for (auto& [what, count] : lost) out.lost.emplace_back(what, count);
  out.missing = missing_text(store, s.places);
  std::map<std::string, std::string> settings;
  for (const auto& row : store.settings) settings[std::string(store.text(row.row.key))] = store.text(row.row.value);
  for (auto& [key, value] : settings) out.settings.emplace_back(key, value);
  out.places = s.places;
  out.main_place = s.main;
  constexpr const char* kSources[] = {"none", "told", "found"};
  out.steps_source = kSources[std::min<std::uint64_t>(store.counts.steps_source, 2)];
  out.steps = store.steps.size();
  out.ooms = static_cast<std::uint64_t>(std::ranges::count_if(store.ooms, [](const auto& o) { return o.row.final; }));
  out.checked = cross_check(store, s.places, *this);
  out.sentence = sentence_of(s);
  return out;
}

}  // namespace vramscope::analyze
