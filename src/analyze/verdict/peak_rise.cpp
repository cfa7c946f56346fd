#include "analyze/verdict/peak_rise.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "analyze/index/lifetime.h"
#include "analyze/query/grouper.h"
#include "analyze/steps/measure.h"
#include "analyze/verdict/autotune.h"
#include "analyze/verdict/counterfactual.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

constexpr std::string_view kFreedLater = "What is live there is freed before the steady steps.";

std::string when_of_peak(const Engine::State& state, const Place& place) {
  if (const std::int64_t step = state.step_number(place.peak_at); step > 0) return fmt::format("in step {}", step);
  if (!state.store.steps.empty() && place.peak_at <= state.store.steps.front().begin) return "before the first step";
  return fmt::format("at {}", support::format_duration(state.store.time_of(place.peak_at)));
}

// What became of the step that holds the peak; empty if it ended as it should.
std::string_view failure_at_peak(const Store& store, Moment peak_at) {
  const Moment pos = peak_at == 0 ? 0 : peak_at - 1;
  for (const StepRow& step : store.steps) {
    if (pos < step.begin || pos >= step.end) continue;
    if (ran_out_of_memory(store, step)) return "ran out of memory";
    if (step.open == kCutShort) return "did not end";
  }
  return {};
}

// How far the peaks of the steady steps lie apart: ops that run side by side make each step a little different.
Bytes spread_of_steps(const Engine::State& state, const Place& place) {
  if (!state.steady.has || state.main < 0 || &place != &state.places[static_cast<std::size_t>(state.main)]) return 0;
  const std::uint32_t kind = state.store.steps[state.steady.first].kind;
  Bytes low = ~Bytes{0}, high = 0;
  for (std::size_t s = state.steady.first; s <= state.steady.last && s < state.measures.size(); ++s) {
    if (state.store.steps[s].kind != kind) continue;
    low = std::min(low, state.measures[s].peak);
    high = std::max(high, state.measures[s].peak);
  }
  return high > low ? high - low : 0;
}

// Whether there are steps to compare a warm-up with: one alone does not show what the others need, nor does one that failed.
bool shows_usual_steps(const Engine::State& state) {
  std::size_t whole = 0;
  for (std::size_t s = state.steady.first; state.steady.has && s <= state.steady.last && s < state.store.steps.size(); ++s)
    if (!ran_out_of_memory(state.store, state.store.steps[s])) ++whole;
  return whole >= 2;
}

// The peak of everything but the evaluations.
std::optional<Bytes> peak_without_evaluations(const Engine::State& state, const Place& place) {
  const Store& store = state.store;
  if (store.events() > kMostEventsOfWalk) return std::nullopt;
  std::size_t next = 0;
  const auto evaluates = [&](std::uint64_t pos) {
    while (next < store.steps.size() && store.steps[next].end <= pos) ++next;
    if (next < store.steps.size() && store.steps[next].begin <= pos) return store.name(store.steps[next].kind) == "evaluate";
    return store.attributes_of(store.ref[pos] >> 1).stage() == Stage::evaluate;
  };
  Bytes live = 0, peak = 0;
  walk(store, Grouper(store, state.pools(place), nullptr), 0, store.events(),
       [&](std::uint64_t pos, std::uint8_t, Bytes bytes, bool is_free) {
         live += is_free ? Bytes{0} - bytes : bytes;
         if (!is_free && live > peak && !evaluates(pos)) peak = live;
       });
  return peak;
}

}  // namespace

std::optional<PeakRise> peak_rise(const Engine::State& state, const Place& place) {
  // Both sides from blocks that the trace has, and never above what was counted.
  const Bytes peak = std::min(place.peak, place.peak_known);
  const Bytes usual = std::max(place.steady_peak / 50, spread_of_steps(state, place));
  if (!place.steady || peak <= place.steady_peak + usual) return std::nullopt;
  PeakRise out;
  out.above = peak - place.steady_peak;
  if (in_evaluation(state.store, place.peak_at)) {
    out.cause = PeakRise::Cause::evaluation;
    out.when = "in an evaluation";
    const Bytes otherwise = peak_without_evaluations(state, place).value_or(place.steady_peak);
    out.above = peak - std::min(peak, otherwise);
    return out;
  }
  out.when = when_of_peak(state, place);
  if (const std::string_view failure = failure_at_peak(state.store, place.peak_at); !failure.empty()) {
    out.cause = PeakRise::Cause::failed;
    out.when += fmt::format(", which {}", failure);
    return out;
  }
  if (state.steady.has && place.peak_at > state.store.steps[state.steady.first].begin) {
    out.cause = PeakRise::Cause::later;
    return out;
  }
  if (!shows_usual_steps(state)) return std::nullopt;
  out.scratch = autotuning(state.store, state.pools(place), place, out.above);
  const bool in_step = state.step_number(place.peak_at) > 0;
  if (out.scratch > 0)
    out.cause = PeakRise::Cause::autotuning;
  else if (in_step && out.above < peak / 20)
    out.cause = PeakRise::Cause::chance;
  return out;
}

std::string only_at_peak(const Store& store, const PoolSet& pools, const Place& place) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::int64_t> sums;  // by line and op
  const auto add = [&](Moment at, std::int64_t sign) {
    for_each_live(store, at, [&](std::uint32_t alloc) {
      const Kind& kind = store.kind_of(alloc);
      if (kind.pool >= pools.size() || pools[kind.pool] == 0) return;
      const auto op = static_cast<std::uint64_t>(store.site_of(kind).op);
      sums[{kind.line, kind.line != 0 ? 0 : op}] += sign * static_cast<std::int64_t>(kind.granted);
    });
  };
  add(place.peak_at, 1);
  add(place.steady_peak_at, -1);
  const auto most = std::ranges::max_element(sums, {}, [](const auto& sum) { return sum.second; });
  if (most == sums.end() || most->second <= 0) return std::string(kFreedLater);
  const auto [line, op] = most->first;
  const std::string_view name = line != 0 ? store.name(line) : store.text(static_cast<trace::StringId>(op));
  if (name.empty()) return std::string(kFreedLater);
  return fmt::format("{} of it was allocated {} {} and is freed before the steady steps.",
                     support::format_size(static_cast<Bytes>(most->second)), line != 0 ? "at" : "by", name);
}

std::string in_words(const PeakRise& rise, const Place& place) {
  return fmt::format("the {} peak was {} {}", support::format_size(place.peak),
                     rise.cause == PeakRise::Cause::autotuning ? "autotuning" : "reached", rise.when);
}

}  // namespace vramscope::analyze
