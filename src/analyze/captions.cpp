#include "analyze/captions.h"

#include <algorithm>

#include <fmt/format.h>

#include "analyze/query/instant_text.h"
#include "support/units.h"

namespace vramscope::analyze {

using support::format_plural;

std::string step_text(const Step& step, std::uint64_t time_us) {
  const std::uint64_t us = time_us - step.begin_us;
  return us < 1'000'000 ? fmt::format("step {} + {:.3f} ms", step.number, static_cast<double>(us) / 1e3)
                        : fmt::format("step {} + {:.6f} s", step.number, static_cast<double>(us) / 1e6);
}

std::string caption(const Engine& engine, const Layers& layers) {
  return fmt::format("At {:.6f} s, in model order. Own peak is the highest that each layer reaches, at any time.",
                     static_cast<double>(engine.time_of(layers.at)) / 1e6);
}

std::string caption(const Live& live, const Steps& steps) {
  const Step* step = step_at(steps, live.time_us);
  return fmt::format("{} live at {:.6f} s{}.", format_plural(live.count, "block", "blocks"),
                     static_cast<double>(live.time_us) / 1e6, step == nullptr ? "" : ", " + step_text(*step, live.time_us));
}

std::string caption_of_peak(const Engine& engine, Moment at) {
  const int index = engine.main_place();
  if (index < 0) return {};
  const Place& place = engine.places()[static_cast<std::size_t>(index)];
  if (at == place.peak_at) return "The highest instant of the run";
  return place.steady && at == place.steady_peak_at ? "The highest instant of the steady steps" : "";
}

std::string caption_of_range(const Steps& steps, std::uint64_t t0_us, std::uint64_t t1_us) {
  const Step* first = step_at(steps, t0_us);
  const Step* last = step_at(steps, t1_us);
  if (first == nullptr || last == nullptr) return {};
  return first == last ? fmt::format("step {}", first->number) : fmt::format("steps {} to {}", first->number, last->number);
}

std::uint64_t epochs_of(const Steps& steps) {
  std::int64_t most = 0;
  for (const Step& step : steps.steps) most = std::max(most, step.epoch);
  return static_cast<std::uint64_t>(most);
}

std::vector<std::string> captions(const Overview& overview, const Steps& steps) {
  std::vector<std::string> out{
      fmt::format("{}, {}", support::format_duration(overview.duration_us), format_plural(overview.events, "event", "events"))};
  if (!steps.steps.empty()) {
    out.push_back(format_plural(steps.steps.size(), "step", "steps"));
    if (const std::uint64_t epochs = epochs_of(steps); epochs > 0)
      out.back() += fmt::format(" in {}", format_plural(epochs, "epoch", "epochs"));
  }
  if (!overview.checked.empty()) out.push_back(overview.checked);
  return out;
}

}  // namespace vramscope::analyze
