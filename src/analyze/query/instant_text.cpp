#include "analyze/query/instant_text.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "analyze/query/state.h"

namespace vramscope::analyze {

std::string seconds_text(std::uint64_t time_us) { return fmt::format("{:.6f}", static_cast<double>(time_us) / 1e6); }

std::string instant_text(const Engine& engine, Moment at) {
  const Engine::State& state = engine.state();
  const Store& store = state.store;
  at = std::min<Moment>(at, store.events());
  if (at == 0) return "start";
  const std::uint64_t time_us = store.time_of(at);
  std::string out = seconds_text(time_us) + "s";
  if (const std::int64_t number = state.step_number(at); number > 0)
    for (const StepRow& step : store.steps)
      if (step.number == number && step.begin <= at && at <= step.end && step.begin_us <= time_us) {
        out = fmt::format("step:{}+{:.3f}ms", number, static_cast<double>(time_us - step.begin_us) / 1e3);
        break;
      }
  if (at != store.moment_at(time_us)) {
    const Moment before = time_us == 0 ? 0 : store.moment_at(time_us - 1);
    out += fmt::format("#{}", at - std::min(at, before));
  }
  return out;
}

const Step* step_at(const Steps& steps, std::uint64_t time_us) {
  const auto after = std::ranges::upper_bound(steps.steps, time_us, {}, &Step::begin_us);
  if (after == steps.steps.begin()) return nullptr;
  const Step& step = *std::prev(after);
  return time_us <= step.end_us ? &step : nullptr;
}

}  // namespace vramscope::analyze
