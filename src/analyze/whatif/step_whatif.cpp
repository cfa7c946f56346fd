#include "analyze/whatif/step_whatif.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "analyze/steps/pace.h"
#include "analyze/steps/usual.h"
#include "analyze/whatif/candidates.h"
#include "analyze/whatif/cards.h"
#include "analyze/whatif/changes.h"
#include "analyze/whatif/device_room.h"
#include "analyze/whatif/shapes.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_count;
using support::format_size;
using whatif::Event;
using whatif::What;

constexpr std::size_t kColumns = 300;  // of a curve
// Answers follow a slider, and a report has dozens of them: this many events take about a tenth of a second each time.
constexpr std::size_t kMostEvents = 200'000;
constexpr double kErrorOfExactChange = 0.015;  // measured: up to 1.1 % (docs/dev/measurements.md)
constexpr std::array kParts{"2", "4", "8", "16"};
// Times the recorded batch.
constexpr std::array kBatches{0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0};

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size() || out == 0 || out > (1u << 24)) return std::nullopt;
  return out;
}

// The steady step with the highest peak; without steady ones, that of all steps. nullopt: there are no steps.
std::optional<std::size_t> chosen_step(const Steps& steps) {
  std::vector<std::size_t> candidates = steady_steps(steps);
  if (candidates.empty())
    for (std::size_t i = 0; i < steps.steps.size(); ++i) candidates.push_back(i);
  const auto peak = [&](std::size_t i) { return steps.steps[i].peak; };
  const auto highest = std::ranges::max_element(candidates, {}, peak);
  return highest == candidates.end() ? std::nullopt : std::optional(*highest);
}

// The highest live bytes and pool in each column, and what is live at the peak.
struct Course {
  Bytes live = 0, pool = 0;
  std::vector<double> live_curve, pool_curve;
  std::array<Bytes, kShown> parts{};
  bool completes = true;
};

Course course_of(const Store& store, const RecordedPool& recorded, const whatif::Scenario& scenario, std::size_t from) {
  Course out;
  const auto allocator = whatif::make_allocator(scenario);
  std::vector<Bytes> bytes(recorded.allocs.size(), 0);
  std::array<Bytes, kShown> parts{};
  Bytes live = 0;
  const std::size_t shown_events = std::max<std::size_t>(1, recorded.events.size() - std::min(from, recorded.events.size()));
  const std::size_t columns = std::min(kColumns, shown_events);
  out.live_curve.assign(columns, 0);
  out.pool_curve.assign(columns, 0);
  for (std::size_t i = 0; i < recorded.events.size(); ++i) {
    const Event& event = recorded.events[i];
    Bytes& of_block = bytes[event.block];
    Bytes& part = parts[static_cast<std::size_t>(category_of(store, recorded, event.block))];
    if (event.what == What::alloc) {
      of_block = (event.bytes + recorded.quantum - 1) / recorded.quantum * recorded.quantum;
      live += of_block;
      part += of_block;
      out.completes = allocator->allocate(event) && out.completes;
    } else if (event.what == What::free) {
      live -= of_block;
      part -= of_block;
      allocator->free(event.block);
    } else {
      allocator->control(event);
    }
    if (live > out.live) {
      out.live = live;
      out.parts = parts;
    }
    if (i < from) continue;
    const std::size_t column = (i - from) * columns / shown_events;
    out.live_curve[column] = std::max(out.live_curve[column], static_cast<double>(live));
    out.pool_curve[column] = std::max(out.pool_curve[column], static_cast<double>(allocator->counters().reserved));
  }
  out.pool = allocator->counters().reserved_peak;
  return out;
}

std::vector<WhatifPart> parts_of(const std::array<Bytes, kShown>& parts) {
  std::vector<WhatifPart> out;
  for (std::size_t i = 0; i < kShown; ++i)
    if (parts[i] != 0) out.push_back({std::string(name_of(static_cast<Shown>(i))), parts[i], 0});
  return out;
}

void compare_with(const WhatifStep& base, WhatifStep& out) {
  out.live_before = base.live;
  out.pool_before = base.pool;
  out.smallest_before = base.smallest;
  out.live_curve_before = base.live_curve;
  for (const WhatifPart& was : base.parts) {
    const auto same = std::ranges::find(out.parts, was.category, &WhatifPart::category);
    if (same != out.parts.end())
      same->before = was.bytes;
    else
      out.parts.push_back({was.category, 0, was.bytes});
  }
  std::ranges::stable_sort(out.parts, std::ranges::greater{},
                           [](const WhatifPart& part) { return std::max(part.bytes, part.before); });
}

double error_of(std::string_view confidence, const Store& store, const RecordedPool& recorded) {
  if (confidence.empty()) return kLeastError;
  return std::max(confidence == "low" ? kMostError : kErrorOfExactChange, error_of_order(store, recorded));
}

// Live at the peak in blocks of which it is not known how they grow, as a share.
double uncertain_share(const RecordedPool& recorded, std::span<const whatif::Scaling> scalings) {
  double all = 0, uncertain = 0, most = 0, share = 0;
  std::vector<double> bytes(recorded.allocs.size(), 0);
  for (const Event& event : recorded.events) {
    if (!whatif::is_of_block(event)) continue;
    const bool begins = event.what == What::alloc;
    if (begins) bytes[event.block] = static_cast<double>(event.bytes);
    all += begins ? bytes[event.block] : -bytes[event.block];
    if (scalings[event.block].uncertain) uncertain += begins ? bytes[event.block] : -bytes[event.block];
    if (all <= most) continue;
    most = all;
    share = uncertain / all;
  }
  return share;
}

void add_cards(const Engine& engine, const RecordedPool& recorded, WhatifStep& out) {
  const Bytes outside = outside_of(engine, recorded, -1) + recorded.before;
  const auto add = [&](std::string name, Bytes memory) {
    WhatifCard card{std::move(name), memory, memory - std::min(memory, outside + left_free(recorded, memory)), "no", 0};
    const double needs = static_cast<double>(out.smallest.value_or(out.pool)), has = static_cast<double>(card.available);
    card.left = has - needs;
    card.fits = needs * (1 + out.error) <= has ? "yes" : needs * (1 - out.error) <= has ? "maybe" : "no";
    out.cards.push_back(std::move(card));
  };
  if (recorded.card != 0) add("this card", recorded.card);
  for (const Card& card : cards()) add(std::string(card.name), card.memory);
}

std::string sentence_of(const WhatifStep& out, const std::string& about, bool changed) {
  const auto fitting = std::ranges::count(out.cards, std::string("yes"), &WhatifCard::fits);
  const std::string needs = out.smallest ? fmt::format(" and completes with {}", format_size(*out.smallest)) : "";
  const std::string cards = fmt::format("It fits on {} of {} cards.", fitting, out.cards.size());
  if (!changed) return fmt::format("As recorded, {} has {} live{}. {}", about, format_size(out.live), needs, cards);
  const double change = out.live_before == 0 ? 0 : static_cast<double>(out.live) / static_cast<double>(out.live_before) - 1;
  return fmt::format("With these changes, {} has {} live, {} % {} than as recorded{}. {}", about, format_size(out.live),
                     format_count(static_cast<std::uint64_t>(std::llround(std::abs(change) * 100))),
                     change <= 0 ? "less" : "more", needs, cards);
}

}  // namespace

Result<StepWhatif> StepWhatif::of(const Engine& engine) {
  const Engine::State& state = engine.state();
  const Store& store = state.store;
  const Steps steps = engine.steps(-1);
  const auto chosen = chosen_step(steps);
  RecordedPart part;
  if (chosen && *chosen + 1 < store.steps.size()) part.until = store.steps[*chosen + 1].begin;
  auto recorded = recorded_pool(state, part);
  if (!recorded) return std::unexpected(recorded.error());
  if (chosen) *recorded = from_event(*recorded, events_of_section(*recorded, static_cast<std::uint32_t>(*chosen) + 1).first);
  if (recorded->events.size() > kMostEvents)
    return fail(fmt::format("a step of {} events takes too long to replay for each change; use 'vramscope whatif'",
                            format_count(recorded->events.size())));
  StepWhatif out(engine, std::move(*recorded));
  out.about_ = chosen ? fmt::format("step {}", format_count(static_cast<std::uint64_t>(steps.steps[*chosen].number))) : "the run";
  if (chosen) {
    const auto samples = samples_of_steps(store);
    if (*chosen < samples.size()) out.batch_ = samples[*chosen];
  }
  if (!out.batch_) out.batch_ = batch_from_shapes(store, out.recorded_);
  out.scalings_ = scalings_by_shape(store, out.recorded_, out.batch_.value_or(kUnknownBatch));
  for (std::uint32_t& section : out.recorded_.sections) section = chosen && section <= *chosen ? 0u : 1u;
  if (chosen) out.recorded_.settled = 1;
  out.add_choices();
  auto base = out.computed({});
  if (!base) return std::unexpected(base.error());
  compare_with(*base, *base);
  out.base_ = std::move(*base);
  return out;
}

void StepWhatif::add_choices() {
  const std::uint64_t batch = batch_.value_or(kUnknownBatch);
  const auto text = [&](std::uint64_t value) { return format_count(value) + (batch_ ? "" : " %"); };
  for (const double times : kBatches) {
    const auto other = static_cast<std::uint64_t>(static_cast<double>(batch) * times);
    if (other == 0 || (times != 1 && other == batch)) continue;
    base_.batches.push_back({times == 1 ? "" : fmt::format("{}", other), text(other)});
  }
  base_.accumulations.push_back({"", "1"});
  for (const char* parts : kParts) base_.accumulations.push_back({parts, parts});
  base_.precisions.push_back({"", "as recorded"});
  for (const std::string& name : precision_names()) base_.precisions.push_back({name, name});
  base_.optimizers.push_back({"", "as recorded"});
  for (const std::string& name : optimizer_names()) base_.optimizers.push_back({name, name});
  base_.allocators.push_back({"", "as recorded"});
  if (const auto others = candidates(recorded_, {}))
    for (const Candidate& other : *others)
      if (other.name != "recorded") base_.allocators.push_back({other.name, other.name});
}

Result<WhatifStep> StepWhatif::computed(const StepWhatifRequest& request) const {
  const Store& store = engine_->state().store;
  RecordedPool recorded = recorded_;
  WhatifStep out = base_;
  out.error = kLeastError;
  const auto batch = number_in(request.batch), parts = number_in(request.accumulate);
  if (!request.batch.empty() && !batch) return fail(fmt::format("invalid batch \"{}\": expected a number", request.batch));
  if (!request.accumulate.empty() && !parts)
    return fail(fmt::format("invalid number of parts \"{}\": expected a number", request.accumulate));
  if (batch) {
    out.error = std::clamp(uncertain_share(recorded, scalings_), kErrorOfShapes, kMostError);
    recorded.events = whatif::substituted(recorded.events, scalings_, static_cast<double>(*batch));
  }
  WhatifRequest changes;
  changes.optimizer = request.optimizer;
  changes.precision = request.precision;
  changes.accumulate = parts.value_or(0);
  const auto changed = change_requests(store, changes, recorded);
  if (!changed) return std::unexpected(changed.error());
  auto wanted = candidate(recorded, request.allocator);
  if (!wanted) return std::unexpected(wanted.error());
  whatif::Work work(0);
  wanted->scenario.device.work = &work;
  wanted->scenario.bfc.limit = whatif::kUnlimited;
  wanted->scenario.torch.limit = 0;
  out.changes = changed->notes;
  out.confidence = changed->confidence;
  out.error = std::max(out.error, error_of(out.confidence, store, recorded));
  if (const auto smallest = whatif::smallest_capacity(recorded.events, wanted->scenario)) out.smallest = smallest->capacity;
  // A pool that takes its limit at once takes what it needs.
  if (wanted->scenario.kind == whatif::Scenario::Kind::bfc && !wanted->scenario.bfc.growth)
    wanted->scenario.bfc.limit = out.smallest.value_or(whatif::kUnlimited);
  const std::size_t from = events_of_section(recorded, 1).first;
  Course course = course_of(store, recorded, wanted->scenario, from);
  if (work.exhausted()) return too_much_work("use 'vramscope whatif' with --where");
  out.live = course.live;
  out.pool = course.pool;
  out.live_curve = std::move(course.live_curve);
  out.pool_curve = std::move(course.pool_curve);
  out.parts = parts_of(course.parts);
  out.assumptions = recorded.assumptions;
  if (recorded.on_host) out.assumptions.emplace_back(kContextIsNotCounted);
  out.cards.clear();
  add_cards(*engine_, recorded, out);
  return out;
}

Result<WhatifStep> StepWhatif::answer(const StepWhatifRequest& request) const {
  auto out = computed(request);
  if (!out) return out;
  compare_with(base_, *out);
  const bool changed = !request.batch.empty() || !out->changes.empty() || !request.allocator.empty();
  out->sentence = sentence_of(*out, about_, changed);
  out->note = fmt::format(
      "One step, replayed. Live is what was requested, without the allocator's rounding. The figures may be off by {}{}.",
      support::format_percent(out->error),
      out->confidence.empty() ? "" : fmt::format(" (confidence in the changes: {})", out->confidence));
  return out;
}

std::vector<StepWhatifRequest> StepWhatif::single_changes() const {
  std::vector<StepWhatifRequest> out;
  const auto add = [&](const std::vector<WhatifChoice>& choices, std::string StepWhatifRequest::* member) {
    for (const WhatifChoice& choice : choices)
      if (!choice.value.empty()) out.emplace_back().*member = choice.value;
  };
  add(base_.batches, &StepWhatifRequest::batch);
  add(base_.accumulations, &StepWhatifRequest::accumulate);
  add(base_.precisions, &StepWhatifRequest::precision);
  add(base_.optimizers, &StepWhatifRequest::optimizer);
  add(base_.allocators, &StepWhatifRequest::allocator);
  return out;
}

}  // namespace vramscope::analyze
