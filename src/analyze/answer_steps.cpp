// Steps and phases as answers: the index's rows with their meaning.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analyze/lifetime.h"
#include "analyze/state.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

// A step whose peak or growth stands out from the median of the steady ones.
void name_outliers(Steps& out) {
  if (!out.has_steady) return;
  std::vector<Bytes> peaks;
  for (std::uint64_t i = out.steady_first; i <= out.steady_last; ++i)
    if (!out.steps[i].warmup) peaks.push_back(out.steps[i].peak);
  if (peaks.size() < 4) return;
  std::ranges::sort(peaks);
  Bytes median = peaks[peaks.size() / 2], spread = peaks[peaks.size() * 9 / 10] - peaks[peaks.size() / 10];
  for (Step& step : out.steps) {
    if (step.warmup || step.kind != out.steps[out.steady_first].kind) continue;
    if (step.peak > median + 3 * spread + median / 20) {
      step.outlier = true;
      step.why = fmt::format("{} above the usual peak", format_size(step.peak - median));
    }
  }
}

std::string sentence_of(const Steps& out) {
  if (out.source == "none") return fmt::format("Steps cannot be told: {}.", out.why);
  const char* how = out.source == "told" ? "" : " (found by what repeats, not told by the program)";
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
  std::string runs = fewest == 0     ? ", each runs a loop of its graph, and how many updates that makes is not told"
                     : most > fewest ? fmt::format(", each runs {} to {} batches", fewest, most)
                     : most > 1      ? fmt::format(", each runs {} batches", most)
                                     : "";
  bool alike = high - low <= high / 20;
  std::string same = low == high ? fmt::format("each peaks at {}", format_size(high))
                                 : fmt::format("they peak at {} to {}", format_size(low), format_size(high));
  std::string start = first_peak > high ? fmt::format("; warm-up before them needed {}", format_size(first_peak)) : "";
  std::string odd = outliers > 0 ? fmt::format("; {} out", support::format_plural(outliers, "step stands", "steps stand")) : "";
  return fmt::format("Steps {} to {} {}: {}{}{}{}{}.", first, last, alike ? "are alike" : "differ", same, start, odd, runs, how);
}

}  // namespace

Steps Engine::steps(int place) const { return steps(place, {}).value_or(Steps{}); }

Result<Steps> Engine::steps(int place, std::string_view where) const {
  const Store& store = state_->store;
  if (auto filter = state_->filter(where, kNever, place); !filter) return std::unexpected(filter.error());
  Steps out;
  constexpr const char* kSources[] = {"none", "told", "found"};
  out.source = kSources[std::min<std::uint64_t>(store.counts.steps_source, 2)];
  if (store.steps.empty()) {
    out.why = store.name(static_cast<std::uint32_t>(store.counts.steps_reason));
    if (out.why.empty()) out.why = "the program told none and no op repeats";
    out.source = "none";
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
  for (std::size_t i = 0; i < store.steps.size(); ++i) {
    const StepRow& row = store.steps[i];
    StepMeasure m = i < measures.size() ? measures[i] : StepMeasure{};
    Step step;
    step.number = row.number;
    step.kind = store.name(row.kind);
    step.batches = row.batches;
    step.epoch = row.epoch;
    step.begin = row.begin;
    step.end = row.end;
    step.begin_us = row.begin_us;
    step.end_us = row.end_us;
    step.warmup = out.has_steady && i < state_->steady.first && row.kind == store.steps[state_->steady.first].kind;
    if (row.open == kCutShort) step.outlier = true, step.why = "The recording ended in it";
    step.peak = m.peak;
    step.peak_at = m.peak_at;
    step.before = m.before;
    step.after = m.after;
    step.growth = static_cast<std::int64_t>(m.after) - static_cast<std::int64_t>(m.before);
    step.allocated = m.allocated;
    step.freed = m.freed;
    step.allocs = m.allocs;
    step.frees = m.frees;
    step.churn = m.peak > 0 ? static_cast<double>(m.allocated) / static_cast<double>(m.peak) : 0;
    step.forward_peak = m.forward_peak;
    step.backward_peak = m.backward_peak;
    step.optimizer_peak = m.optimizer_peak;
    step.before_optimizer = m.before_optimizer;
    step.after_optimizer = m.after_optimizer;
    out.steps.push_back(std::move(step));
  }
  name_outliers(out);
  out.sentence = sentence_of(out);
  return out;
}

std::vector<Phase> Engine::phases(int place) const { return phases(place, {}).value_or(std::vector<Phase>{}); }

Result<std::vector<Phase>> Engine::phases(int place_index, std::string_view where) const {
  const Store& store = state_->store;
  if (auto filter = state_->filter(where, kNever, place_index); !filter) return std::unexpected(filter.error());
  std::vector<Phase> out;
  auto add = [&](std::string name, Moment begin, Moment end, std::uint64_t begin_us, std::uint64_t end_us) {
    Phase phase;
    phase.name = std::move(name);
    phase.begin = begin;
    phase.end = end;
    phase.begin_us = begin_us;
    phase.end_us = end_us;
    out.push_back(std::move(phase));
  };
  for (const Mark& m : marks(0, 0, "phase")) add(m.name, m.begin, m.end, m.begin_us, m.end_us);
  for (const Mark& m : marks(0, 0, "scope"))
    if (m.end > m.begin) add(m.name, m.begin, m.end, m.begin_us, m.end_us);
  if (state_->steady.has) {
    const StepRow& first = store.steps[state_->steady.first];
    std::size_t start = 0;
    while (start < state_->steady.first && store.steps[start].kind != first.kind) ++start;
    if (start < state_->steady.first) {
      const StepRow& a = store.steps[start];
      const StepRow& b = store.steps[state_->steady.first - 1];
      add(start + 1 == state_->steady.first ? "first step" : "first steps", a.begin, b.end, a.begin_us, b.end_us);
    }
    // One after the other where evaluations lie between them.
    std::size_t at = state_->steady.first;
    for (const Stretch& stretch : state_->steady.training) {
      while (at < state_->steady.last && store.steps[at].begin < stretch.from) ++at;
      const std::uint64_t begin_us = store.steps[at].begin_us;
      while (at < state_->steady.last && store.steps[at].end < stretch.to) ++at;
      add("steady steps", stretch.from, stretch.to, begin_us, store.steps[at].end_us);
    }
    if (start < store.steps.size() && store.steps[start].begin > 0 &&
        std::ranges::none_of(out, [](const Phase& p) { return p.name == "build" || p.name == "import"; }))
      add("before training", 0, store.steps[start].begin, 0, store.steps[start].begin_us);
  }
  auto view = state_->total(place_index, where);
  for (Phase& phase : out) {
    if (view) {
      Leaf peak = (*view)->pyramid.peak_between(store, *(*view)->grouper, phase.begin, phase.end);
      phase.peak = peak.high;
      phase.peak_at = peak.at;
      auto before = (*view)->pyramid.allocated_before(store, *(*view)->grouper, phase.begin);
      auto after = (*view)->pyramid.allocated_before(store, *(*view)->grouper, phase.end);
      phase.allocated = after.first - before.first;
      phase.allocs = after.second - before.second;
      for_each_live(store, phase.end, [&](std::uint32_t alloc) {
        if (store.birth[alloc] >= phase.begin && (*view)->grouper->of(alloc) != kOut)
          phase.growth_kept += (*view)->grouper->bytes(alloc);
      });
    }
    for (const auto& sample : store.host_samples)
      if (sample.time_us >= phase.begin_us && sample.time_us <= phase.end_us)
        phase.host_peak = std::max(phase.host_peak, sample.row.rss);
  }
  std::ranges::stable_sort(out, {}, &Phase::begin);
  return out;
}

}  // namespace vramscope::analyze
