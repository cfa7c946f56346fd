#include "analyze/key_figures.h"

#include <algorithm>

#include <fmt/format.h>

#include "analyze/gen/texts.h"
#include "analyze/query/instant_text.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

KeyFigure steady_peak(const Place& place, const Steps& steps) {
  if (!place.steady || !steps.has_steady)
    return {.label = std::string(kSteadyPeak.title),
            .note = steps.steps.empty() ? "no steps were found" : "no steady state",
            .view = "steps"};
  return {.label = std::string(kSteadyPeak.title),
          .bytes = static_cast<double>(place.steady_peak),
          .note = several_steps(std::to_string(steps.steps[steps.steady_first].number),
                                std::to_string(steps.steps[steps.steady_last].number)),
          .at_least = !place.order_exact,
          .view = "peak",
          .at = std::string(kSteadyPeak.name)};
}

KeyFigure peak(const Engine& engine, const Place& place, const Steps& steps) {
  const std::uint64_t time_us = engine.time_of(place.peak_at);
  const Step* step = step_at(steps, time_us);
  const std::string when = fmt::format("at {}", support::format_duration(time_us));
  return {.label = std::string(kPeak.title),
          .bytes = static_cast<double>(place.peak),
          .note = step != nullptr ? fmt::format("step {}, {}", step->number, when) : when,
          .at_least = !place.order_exact,
          .view = "peak",
          .at = std::string(kPeak.name)};
}

KeyFigure growth(const Leaks* leaks) {
  KeyFigure out{.label = "Growth", .view = "leaks"};
  if (leaks == nullptr) return out;
  if (leaks->verdict == "cannot tell") {
    out.note = leaks->why;
    return out;
  }
  out.bytes = leaks->verdict == "growing" ? leaks->bytes_per_step : 0;
  out.unit = "per step";
  out.note = leaks->left_after.empty() ? leaks->verdict
                                       : fmt::format("{} left after the last step", format_size(leaks->left_after.back()));
  return out;
}

}  // namespace

const LedgerLine* line_named(const Ledger& ledger, std::string_view name) {
  const auto found = std::ranges::find(ledger.lines, name, &LedgerLine::name);
  return found != ledger.lines.end() ? &*found : nullptr;
}

std::vector<KeyFigure> key_figures(const Engine& engine, const Steps& steps, const Leaks* leaks, const Ledger* ledger) {
  const int index = engine.main_place();
  if (index < 0) return {};
  const Place& place = engine.places()[static_cast<std::size_t>(index)];
  std::vector<KeyFigure> out{steady_peak(place, steps), peak(engine, place, steps)};
  if (place.regions_end > 0)
    out.push_back({.label = "Pool",
                   .bytes = static_cast<double>(place.regions_end),
                   .note = fmt::format("{} live in it at the end", format_size(place.end)),
                   .view = "map",
                   .at = "end"});
  const LedgerLine* used = ledger != nullptr ? line_named(*ledger, "device used") : nullptr;
  if (used != nullptr && used->bytes)
    out.push_back({.label = "Device used",
                   .bytes = static_cast<double>(*used->bytes),
                   .note = ledger->card > 0
                               ? fmt::format("{} of the card", support::format_percent(static_cast<double>(*used->bytes) /
                                                                                       static_cast<double>(ledger->card)))
                               : ""});
  out.push_back(growth(leaks));
  return out;
}

}  // namespace vramscope::analyze
