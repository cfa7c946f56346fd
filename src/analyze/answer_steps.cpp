// Steps and phases as answers: the rows of the index with their meaning.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "analyze/query/state.h"
#include "analyze/steps/pace.h"
#include "analyze/steps/phases.h"
#include "analyze/steps/shape_change.h"
#include "analyze/steps/usual.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

// A step whose peak stands out from the usual one.
void name_outliers(Steps& out) {
  std::vector<Bytes> peaks;
  for (const std::size_t i : steady_steps(out)) peaks.push_back(out.steps[i].peak);
  if (peaks.size() < 4) return;
  std::ranges::sort(peaks);
  const Bytes spread = peaks[peaks.size() * 9 / 10] - peaks[peaks.size() / 10];
  const Bytes usual = out.steps[*usual_step(out)].peak;
  for (Step& step : out.steps) {
    if (step.warmup || step.kind != out.steps[out.steady_first].kind) continue;
    if (step.peak > usual + 3 * spread + usual / 20) {
      step.outlier = true;
      step.why = fmt::format("{} above the usual peak", format_size(step.peak - usual));
    }
  }
}

std::string note_of(std::string_view source) {
  if (source == "reported") return "Steps were reported by the training loop.";
  return source == "inferred" ? "Steps were inferred from repetition; the training loop reported none." : "";
}

std::string sentence_of(const Steps& out) {
  if (out.source == "none") return fmt::format("No training steps can be identified: {}.", out.why);
  const char* how = out.source == "reported" ? "" : " (inferred from what repeats, not reported by the program)";
  if (!out.has_steady)
    return fmt::format("{} recorded{}; a steady state needs at least two.",
                       support::format_plural(out.steps.size(), "step was", "steps were"), how);
  Bytes low = ~Bytes{0}, high = 0, first_peak = 0;
  std::uint64_t outliers = 0;
  std::int64_t first = 0, last = 0, fewest = 1, most = 1;  // batches of a step
  for (std::uint64_t i = 0; i < out.steps.size(); ++i) {
    const Step& s = out.steps[i];
    if (s.kind != out.steps[out.steady_first].kind || i > out.steady_last) continue;
    if (i < out.steady_first) {
      first_peak = std::max(first_peak, s.peak);
      continue;
    }
    low = std::min(low, s.peak);
    high = std::max(high, s.peak);
    outliers += s.outlier ? 1 : 0;
    fewest = first == 0 ? s.batches : std::min(fewest, s.batches);
    most = std::max(most, s.batches);
    if (first == 0) first = s.number;
    last = s.number;
  }
  std::string runs = fewest == 0     ? ", each runs a loop in its graph with an unknown number of updates"
                     : most > fewest ? fmt::format(", each runs {} to {} batches", fewest, most)
                     : most > 1      ? fmt::format(", each runs {} batches", most)
                                     : "";
  bool alike = high - low <= high / 20;
  const std::string lowest = format_size(low), highest = format_size(high);
  std::string same =
      lowest == highest ? fmt::format("each peaks at {}", highest) : fmt::format("they peak at {} to {}", lowest, highest);
  std::string start = first_peak > high ? fmt::format("; warm-up before them needed {}", format_size(first_peak)) : "";
  std::string odd = outliers > 0 ? fmt::format("; {} out", support::format_plural(outliers, "step stands", "steps stand")) : "";
  return fmt::format("Steps {} to {} {}: {}{}{}{}{}.{}", first, last, alike ? "are alike" : "differ", same, runs, start, odd, how,
                     out.reason.empty() || alike ? "" : " " + out.reason);
}

Step step_of(const Store& store, const StepRow& row, const StepMeasure& measure) {
  Step step;
  step.number = row.number;
  step.kind = store.name(row.kind);
  step.batches = row.batches;
  step.epoch = row.epoch;
  step.begin = row.begin;
  step.end = row.end;
  step.begin_us = row.begin_us;
  step.end_us = row.end_us;
  if (row.open == kCutShort) {
    step.outlier = true;
    step.why = "The recording ended in it";
  }
  step.peak = measure.peak;
  step.peak_at = measure.peak_at;
  step.before = measure.before;
  step.after = measure.after;
  step.growth = static_cast<std::int64_t>(measure.after) - static_cast<std::int64_t>(measure.before);
  step.allocated = measure.allocated;
  step.freed = measure.freed;
  step.allocs = measure.allocs;
  step.frees = measure.frees;
  step.churn = measure.peak > 0 ? static_cast<double>(measure.allocated) / static_cast<double>(measure.peak) : 0;
  step.forward_peak = measure.forward_peak;
  step.backward_peak = measure.backward_peak;
  step.optimizer_peak = measure.optimizer_peak;
  step.before_optimizer = measure.before_optimizer;
  step.after_optimizer = measure.after_optimizer;
  return step;
}

Phase phase_of(std::string name, Moment begin, Moment end, std::uint64_t begin_us, std::uint64_t end_us) {
  Phase phase;
  phase.name = std::move(name);
  phase.begin = begin;
  phase.end = end;
  phase.begin_us = begin_us;
  phase.end_us = end_us;
  return phase;
}

// Removes phases inside another one of their name, of which they are a part: a function that is traced while another one is.
void drop_nested(std::vector<Phase>& phases) {
  std::ranges::stable_sort(
      phases, [](const Phase& a, const Phase& b) { return std::pair(a.begin, ~a.end) < std::pair(b.begin, ~b.end); });
  std::map<std::string, Moment> open_until;
  std::erase_if(phases, [&](const Phase& phase) {
    const auto [around, first] = open_until.try_emplace(phase.name, phase.end);
    if (!first && phase.end <= around->second && phase.begin < around->second) return true;
    around->second = std::max(around->second, phase.end);
    return false;
  });
}

// Those that the program marked.
std::vector<Phase> marked_phases(const Engine& engine) {
  std::vector<Phase> out;
  for (const Mark& m : engine.marks(0, 0, "phase")) out.push_back(phase_of(m.name, m.begin, m.end, m.begin_us, m.end_us));
  drop_nested(out);
  for (const Mark& m : engine.marks(0, 0, "scope"))
    if (m.end > m.begin) out.push_back(phase_of(m.name, m.begin, m.end, m.begin_us, m.end_us));
  return out;
}

// What came before training, its warm-up and its steady steps.
std::vector<Phase> training_phases(const Store& store, const Steady& steady, bool startup_is_marked) {
  std::vector<Phase> out;
  if (!steady.has) return out;
  std::size_t start = 0;
  while (start < steady.first && store.steps[start].kind != store.steps[steady.first].kind) ++start;
  if (start < steady.first) {
    const StepRow &a = store.steps[start], &b = store.steps[steady.first - 1];
    const char* const name = start + 1 == steady.first ? "first step" : "first steps";
    out.push_back(phase_of(name, a.begin, b.end, a.begin_us, b.end_us));
  }
  // Several if the program evaluates between them.
  std::size_t at = steady.first;
  for (const Stretch& stretch : steady.training) {
    while (at < steady.last && store.steps[at].begin < stretch.from) ++at;
    const std::uint64_t begin_us = store.steps[at].begin_us;
    while (at < steady.last && store.steps[at].end < stretch.to) ++at;
    out.push_back(phase_of("steady steps", stretch.from, stretch.to, begin_us, store.steps[at].end_us));
  }
  if (const StepRow& first = store.steps[start]; first.begin > 0 && !startup_is_marked)
    out.push_back(phase_of("before training", 0, first.begin, 0, first.begin_us));
  return out;
}

}  // namespace

std::string_view source_of_steps(const Store& store) {
  if (store.steps.empty()) return "none";
  constexpr std::string_view kSources[] = {"none", "reported", "inferred"};
  return kSources[std::min<std::uint64_t>(store.counts.steps_source, 2)];
}

Steps Engine::steps(int place) const { return steps(place, {}).value_or(Steps{}); }

Result<Steps> Engine::steps(int place, std::string_view where) const {
  const Store& store = state_->store;
  if (auto filter = state_->filter(where, kNever, place); !filter) return std::unexpected(filter.error());
  Steps out;
  out.source = source_of_steps(store);
  out.note = note_of(out.source);
  if (store.steps.empty()) {
    out.why = store.name(static_cast<std::uint32_t>(store.counts.steps_reason));
    if (out.why.empty()) out.why = "the program reported none, and no op repeats";
    out.sentence = sentence_of(out);
    return out;
  }
  std::vector<StepMeasure> measures = state_->measures;
  if ((place >= 0 && place != state_->main) || !where.empty()) {
    auto view = state_->total(place, where);
    if (view) measures = measure_steps(store, *(*view)->grouper, (*view)->pyramid, state_->threads);
  }
  out.has_steady = state_->steady.has;
  out.steady_first = state_->steady.first;
  out.steady_last = state_->steady.last;
  const std::vector<std::optional<std::uint64_t>> samples = samples_of_steps(store);
  for (std::size_t i = 0; i < store.steps.size(); ++i) {
    const StepRow& row = store.steps[i];
    Step& step = out.steps.emplace_back(step_of(store, row, i < measures.size() ? measures[i] : StepMeasure{}));
    step.warmup = out.has_steady && i < out.steady_first && row.kind == store.steps[out.steady_first].kind;
    step.samples = samples[i];
  }
  name_outliers(out);
  explain_differences(store, out);
  measure_pace(out);
  out.sentence = sentence_of(out);
  return out;
}

std::vector<Phase> Engine::phases(int place) const { return phases(place, {}).value_or(std::vector<Phase>{}); }

Result<std::vector<Phase>> Engine::phases(int place_index, std::string_view where) const {
  const Store& store = state_->store;
  if (auto filter = state_->filter(where, kNever, place_index); !filter) return std::unexpected(filter.error());
  std::vector<Phase> out = marked_phases(*this);
  const bool startup_is_marked =
      std::ranges::any_of(out, [](const Phase& phase) { return phase.name == "build" || phase.name == "import"; });
  std::ranges::move(training_phases(store, state_->steady, startup_is_marked), std::back_inserter(out));
  const auto view = state_->total(place_index, where);
  if (view) measure_phases(store, **view, out);
  measure_host(store, out);
  std::ranges::stable_sort(out, {}, &Phase::begin);
  return out;
}

}  // namespace vramscope::analyze
