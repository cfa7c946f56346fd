#include "analyze/steps/pace.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "support/units.h"

namespace vramscope::analyze {
namespace {

template <typename T>
std::optional<T> median(std::vector<T> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Calls f(step, next steady step or NULL) for each steady step.
template <typename F>
void for_each_steady(const Steps& steps, F f) {
  if (!steps.has_steady) return;
  const Step* before = nullptr;
  for (std::uint64_t i = steps.steady_first; i <= steps.steady_last && i < steps.steps.size(); ++i) {
    const Step& step = steps.steps[i];
    if (step.warmup || step.kind != steps.steps[steps.steady_first].kind) continue;
    if (before != nullptr) f(*before, &step);
    before = &step;
  }
  if (before != nullptr) f(*before, nullptr);
}

}  // namespace

std::vector<std::optional<std::uint64_t>> samples_of_steps(const Store& store) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sizes;  // since when, samples of a batch
  for (const auto& mark : store.marks)
    if (mark.row.kind == trace::MarkKind::check && store.text(mark.row.name) == "samples" && mark.row.number > 0)
      sizes.emplace_back(mark.pos, static_cast<std::uint64_t>(mark.row.number));
  std::vector<std::optional<std::uint64_t>> out(store.steps.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const StepRow& step = store.steps[i];
    if (store.name(step.kind) != "train" || step.batches == 0) continue;
    // A loop takes its batch before the step, or in it if steps are counted by their ends.
    const auto after = std::ranges::lower_bound(sizes, step.end, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
    if (after != sizes.begin()) out[i] = std::prev(after)->second * step.batches;
  }
  return out;
}

std::optional<std::uint64_t> usual_samples(const Steps& steps) {
  std::vector<std::uint64_t> samples;
  bool all = true;
  for_each_steady(steps, [&](const Step& step, const Step*) {
    all = all && step.samples.has_value();
    samples.push_back(step.samples.value_or(0));
  });
  return all ? median(std::move(samples)) : std::nullopt;
}

void measure_pace(Steps& steps) {
  std::vector<std::uint64_t> lengths, intervals;
  for_each_steady(steps, [&](const Step& step, const Step* next) {
    lengths.push_back(step.end_us - std::min(step.begin_us, step.end_us));
    if (next != nullptr && next->begin_us >= step.begin_us) intervals.push_back(next->begin_us - step.begin_us);
  });
  steps.step_us = median(std::move(lengths));
  steps.interval_us = median(std::move(intervals));
  const std::optional<std::uint64_t> samples = usual_samples(steps);
  if (samples && steps.interval_us.value_or(0) > 0)
    steps.samples_per_s = 1e6 * static_cast<double>(*samples) / static_cast<double>(*steps.interval_us);
  const std::string words = pace_in_words(steps.interval_us, steps.samples_per_s);
  if (words.empty()) return;
  steps.pace = fmt::format("Steady steps: {}{}.", words, samples ? fmt::format(" at {} per step", *samples) : "");
}

std::string pace_in_words(std::optional<std::uint64_t> interval_us, std::optional<double> samples_per_s) {
  if (!interval_us) return {};
  std::string out = fmt::format("one every {}", support::format_duration(*interval_us));
  if (samples_per_s)
    out +=
        fmt::format(", {} samples per second", support::format_count(static_cast<std::uint64_t>(std::llround(*samples_per_s))));
  return out;
}

}  // namespace vramscope::analyze
