#include "analyze/steps/pass_bands.h"

#include <algorithm>
#include <array>

#include "analyze/attribute/op_names.h"
#include "analyze/query/state.h"

namespace vramscope::analyze {
namespace {

constexpr std::array<Stage, 3> kPasses = {Stage::forward, Stage::backward, Stage::optimizer};

struct Span {
  std::uint64_t first = kNever, last = 0;  // positions of events
};

void add_bands(const Store& store, const StepRow& step, std::vector<PassBand>& out) {
  std::array<Span, kPasses.size()> spans;
  const std::uint64_t end = std::min<std::uint64_t>(step.end, store.events());
  for (std::uint64_t pos = step.begin; pos < end; ++pos) {
    const std::uint32_t ref = store.ref[pos];
    if (ref == kNone32 || (ref & 1) != 0) continue;  // a free happens when it happens, not when its pass runs
    const auto pass = std::ranges::find(kPasses, store.attributes_of(ref >> 1).stage());
    if (pass == kPasses.end()) continue;
    Span& span = spans[static_cast<std::size_t>(pass - kPasses.begin())];
    span.first = std::min(span.first, pos);
    span.last = pos;
  }
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (spans[i].first != kNever)
      out.push_back({std::string(name_of(kPasses[i])), store.time_of_event(spans[i].first), store.time_of_event(spans[i].last)});
}

}  // namespace

std::vector<PassBand> pass_bands(const Engine& engine, std::uint64_t t0_us, std::uint64_t t1_us, std::uint64_t most_events) {
  const Store& store = engine.state().store;
  std::vector<const StepRow*> steps;
  std::uint64_t events = 0;
  for (const StepRow& step : store.steps) {
    if (step.end_us < t0_us || step.begin_us >= t1_us) continue;
    events += step.end - std::min(step.begin, step.end);
    if (events > most_events) return {};
    steps.push_back(&step);
  }
  std::vector<PassBand> out;
  for (const StepRow* step : steps) add_bands(store, *step, out);
  return out;
}

}  // namespace vramscope::analyze
