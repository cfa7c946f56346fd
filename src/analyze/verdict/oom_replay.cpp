#include "analyze/verdict/oom_replay.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyze/steps/pace.h"
#include "analyze/whatif/candidates.h"
#include "analyze/whatif/forecaster.h"
#include "analyze/whatif/shapes.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using whatif::Event;
using whatif::What;

constexpr std::size_t kMostEvents = 60'000;  // of longer runs, only the last steps are replayed
constexpr whatif::OrderBudget kOrdersOfSetting{500'000, 2, 12};
constexpr Forecaster::Errors kErrors{kLeastError, kLeastError};  // "at most": what is not known about the step is said

// The requests up to the failed one, which is the last block, and then one more whole step if the recording has one.
struct Failure {
  RecordedPool recorded;
  std::vector<whatif::Scaling> scalings;
  std::optional<std::uint64_t> batch;
  bool whole_step = false;
};

using Samples = std::vector<std::optional<std::uint64_t>>;  // samples_of_steps()

// Samples of the batch at a moment: other steps may have had others. `step`: the number of the last one that began before it.
std::optional<std::uint64_t> batch_at(const Store& store, const RecordedPool& recorded, const Samples& samples,
                                      std::uint32_t step, Moment at) {
  if (step == 0) return batch_from_shapes(store, recorded, 0, at);
  const StepRow& row = store.steps[step - 1];
  const bool in_step = at <= row.end;
  if (in_step && samples[step - 1]) return samples[step - 1];
  return batch_from_shapes(store, recorded, in_step ? row.begin : row.end, at);
}

// By block. The step before the failed one may have had another batch, which is comparable if that of the failed one is known.
std::vector<whatif::Scaling> scalings_of(const Store& store, const RecordedPool& recorded, const Samples& samples,
                                         std::uint32_t before, std::optional<std::uint64_t> batch) {
  auto out = scalings_by_shape(store, recorded, batch.value_or(kUnknownBatch));
  if (!batch || before == 0) return out;
  const auto other = batch_at(store, recorded, samples, before, store.steps[before - 1].end);
  if (!other || other == batch) return out;
  const auto of_other = scalings_by_shape(store, recorded, *other);
  for (std::size_t block = 0; block < out.size(); ++block)
    if (recorded.sections[block] == before) out[block] = of_other[block];
  return out;
}

// Whether there is anything that a batch flows through. Otherwise, a part of the batch would be a part of nothing.
bool has_batch(const Store& store, const Failure& failure, const OomRequest& request) {
  const auto flows = [](Shown category) {
    return category == Shown::inputs || category == Shown::activations || category == Shown::activation_gradients;
  };
  const auto holds = [&](std::uint32_t alloc) { return alloc != kNone32 && flows(shown(store.attributes_of(alloc).category())); };
  return failure.batch || flows(request.category) || std::ranges::any_of(failure.recorded.allocs, holds);
}

void add_block(Failure& failure, Bytes bytes, const whatif::Scaling& scaling, std::uint32_t alloc, std::uint32_t section) {
  RecordedPool& recorded = failure.recorded;
  recorded.events.push_back({bytes, static_cast<std::uint32_t>(recorded.allocs.size()), 0, What::alloc, 0});
  recorded.allocs.push_back(alloc);
  recorded.sections.push_back(section);
  failure.scalings.push_back(scaling);
}

// The failed step ends: what it made goes. Then what the step before made and freed, once more.
void add_whole_step(Failure& failure, std::uint32_t failed, const EventRange& events) {
  RecordedPool& recorded = failure.recorded;
  std::vector<char> lives(recorded.allocs.size(), 0);
  for (const Event& event : recorded.events)
    if (whatif::is_of_block(event)) lives[event.block] = event.what == What::alloc ? 1 : 0;
  for (std::uint32_t block = 0; block < lives.size(); ++block)
    if (lives[block] != 0 && recorded.sections[block] >= failed) recorded.events.push_back({0, block, 0, What::free, 0});
  std::vector<std::uint32_t> again(recorded.allocs.size(), kNone32);
  std::vector<char> freed(recorded.allocs.size(), 0);
  for (std::size_t i = events.first; i < events.last; ++i)
    if (recorded.events[i].what == What::free) freed[recorded.events[i].block] = 1;
  for (std::size_t i = events.first; i < events.last; ++i) {
    Event event = recorded.events[i];
    const std::uint32_t block = event.block;
    if (event.what == What::alloc && freed[block] != 0) {
      again[block] = static_cast<std::uint32_t>(recorded.allocs.size());
      add_block(failure, event.bytes, failure.scalings[block], recorded.allocs[block], failed);
      recorded.events.back().stream = event.stream;
    } else if (event.what == What::free && again[block] != kNone32) {
      event.block = again[block];
      recorded.events.push_back(event);
    } else if (!whatif::is_of_block(event)) {
      recorded.events.push_back(event);
    }
  }
  failure.whole_step = true;
}

std::optional<Failure> failure_of(const Engine::State& state, const FailedPool& where, const Stamped<trace::Oom>& oom,
                                  const OomRequest& request) {
  const Store& store = state.store;
  auto recorded = recorded_pool(state, {.place = where.index, .pool = where.pool, .until = oom.pos});
  if (!recorded || recorded->events.empty()) return std::nullopt;
  std::uint32_t failed = 0;  // the section of the failed request
  for (const StepRow& step : store.steps) failed += step.begin <= oom.pos ? 1u : 0u;
  std::uint32_t before = failed > 0 ? failed - 1 : 0;  // a whole step
  if (recorded->events.size() > kMostEvents && before > 0)
    *recorded = from_event(*recorded, events_of_section(*recorded, before).first);
  Failure out{std::move(*recorded), {}, {}, false};
  const Samples samples = samples_of_steps(store);
  out.batch = batch_at(store, out.recorded, samples, failed, oom.pos);
  const std::uint64_t batch = out.batch.value_or(kUnknownBatch);
  const trace::Site& site = store.dictionaries().sites[static_cast<std::size_t>(oom.row.site)];
  out.scalings = scalings_of(store, out.recorded, samples, before, out.batch);
  const auto scaling = scaling_by_shape(store, out.recorded, batch, {site.requested, request.category, store.text(site.shape)});
  const auto events = events_of_section(out.recorded, before);
  add_block(out, site.requested, scaling, kNone32, failed);
  if (before > 0 && events.first < events.last) add_whole_step(out, failed, events);
  return out;
}

bool completes(const whatif::Events& events, whatif::Scenario scenario, Bytes available) {
  scenario.bfc.limit = available;
  scenario.torch.limit = std::min(scenario.torch.limit, available);
  scenario.device.capacity = available;
  const unsigned orders = whatif::orders_for(events.size(), kOrdersOfSetting);
  return whatif::replay_orders(events, scenario, orders, whatif::OnFailure::stop).failed == 0;
}

std::string sentence_of(const OomReplay& replay) {
  // That no setting helps is never said: the replay knows the addresses of the driver only in part.
  std::string out = "In a replay, ";
  if (!replay.avoided_by.empty()) out += fmt::format("the request is served with {}", replay.avoided_by.front().setting);
  const char* const separator = replay.avoided_by.empty() ? "" : "; ";
  const std::string rest = replay.whole_step ? "" : ", but what the rest of the step needs was not recorded";
  if (replay.largest)
    out += fmt::format("{}batch {} instead of {} fits{}", separator, support::format_count(*replay.largest),
                       support::format_count(*replay.batch), rest);
  else if (replay.largest_share)
    out += fmt::format("{}{:.0f} % of the batch fits{}", separator, 100 * *replay.largest_share, rest);
  return out + ".";
}

}  // namespace

std::optional<OomReplay> replay_failure(const Engine::State& state, const FailedPool& where, const Stamped<trace::Oom>& oom,
                                        const OomScene& scene, const OomRequest& request) {
  auto failure = failure_of(state, where, oom, request);
  const Bytes available = scene.reach() - std::min(scene.reach(), failure ? failure->recorded.before : 0);
  if (!failure || available == 0) return std::nullopt;
  whatif::Work work(0);
  RecordedPool& recorded = failure->recorded;
  recorded.scenario.device.work = &work;
  // The failure knows the limit even if the process did not live to report it. A pool without growth took it at once.
  if (scene.limit != 0 && !recorded.calls.empty())
    recorded.scenario.bfc.growth = recorded.calls.front().bytes + 256 <= scene.limit;
  if (completes(recorded.events, recorded.scenario, available)) return std::nullopt;
  OomReplay out;
  out.batch = failure->batch;
  out.whole_step = failure->whole_step;
  if (const auto others = candidates(recorded, {}))
    for (const Candidate& other : *others)
      if (other.name != "recorded" && completes(recorded.events, other.scenario, available))
        out.avoided_by.push_back({other.name, other.setting});
  const std::uint64_t batch = failure->batch.value_or(kUnknownBatch);
  const Forecaster forecaster(state.store, recorded, std::move(failure->scalings), recorded.scenario, kErrors);
  const std::uint64_t largest = has_batch(state.store, *failure, request)
                                    ? forecaster.largest_batch(available, std::min(batch - 1, Forecaster::kLargestBatch))
                                    : 0;
  if (work.exhausted()) return std::nullopt;
  if (largest > 0) out.largest_share = static_cast<double>(largest) / static_cast<double>(batch);
  if (largest > 0 && failure->batch) out.largest = largest;
  if (largest == 0 && out.avoided_by.empty()) return std::nullopt;
  out.sentence = sentence_of(out);
  return out;
}

}  // namespace vramscope::analyze
