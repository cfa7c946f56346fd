#include "analyze/steps/pace.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "analyze/steps/usual.h"
#include "support/units.h"

namespace vramscope::analyze {

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

void measure_pace(Steps& steps) {
  std::vector<std::uint64_t> lengths, intervals;
  const Step* before = nullptr;
  for (const std::size_t i : steady_steps(steps)) {
    const Step& step = steps.steps[i];
    lengths.push_back(step.end_us - std::min(step.begin_us, step.end_us));
    if (before != nullptr && step.begin_us >= before->begin_us) intervals.push_back(step.begin_us - before->begin_us);
    before = &step;
  }
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
