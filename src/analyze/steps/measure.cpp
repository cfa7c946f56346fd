#include "analyze/steps/measure.h"

#include <algorithm>

#include "analyze/attribute/op_names.h"
#include "analyze/index/parallel.h"

namespace vramscope::analyze {

std::vector<StepMeasure> measure_steps(const Store& store, const Grouper& grouper, const Pyramid& pyramid, unsigned threads) {
  std::vector<StepMeasure> out(store.steps.size());
  parallel(threads, out.size(), [&](std::size_t i, unsigned) {
    const StepRow& step = store.steps[i];
    StepMeasure& m = out[i];
    Bytes total = 0;
    for (Bytes b : pyramid.at(store, grouper, step.begin)) total += b;
    m.before = m.peak = total;
    m.peak_at = step.begin;
    walk(store, grouper, step.begin, std::min<std::uint64_t>(step.end, store.events()),
         [&](std::uint64_t pos, std::uint8_t, Bytes bytes, bool is_free) {
           Stage stage = store.attributes_of(store.ref[pos] >> 1).stage();
           if (is_free) {
             total -= bytes;
             m.freed += bytes;
             m.frees += 1;
             return;
           }
           if (stage == Stage::optimizer && m.optimizer_peak == 0) m.before_optimizer = total;
           total += bytes;
           m.allocated += bytes;
           m.allocs += 1;
           if (total > m.peak) {
             m.peak = total;
             m.peak_at = pos + 1;
           }
           if (stage == Stage::forward) m.forward_peak = std::max(m.forward_peak, total);
           if (stage == Stage::backward) m.backward_peak = std::max(m.backward_peak, total);
           if (stage == Stage::optimizer) m.optimizer_peak = std::max(m.optimizer_peak, total);
         });
    m.after = total;
    m.after_optimizer = m.optimizer_peak == 0 ? 0 : total;
  });
  return out;
}

namespace {

// Where evaluations start according to the program's phases.
std::vector<Moment> evaluations(const Store& store) {
  std::vector<Moment> out;
  for (const auto& m : store.marks)
    if (m.row.kind == trace::MarkKind::phase && m.row.edge == trace::MarkEdge::begin &&
        stage_from(store.text(m.row.name)) == Stage::evaluate)
      out.push_back(m.pos);
  return out;
}

// Steady training, without the intervals between steps in which the program evaluates.
std::vector<Stretch> training_of(const Store& store, std::span<const std::size_t> steady) {
  const std::vector<Moment> evaluated = evaluations(store);
  auto evaluates = [&](std::size_t step, std::size_t next) {
    auto first = std::ranges::lower_bound(evaluated, store.steps[step].end);
    return next > step + 1 || (first != evaluated.end() && *first < store.steps[next].begin);
  };
  std::vector<Stretch> out;
  Moment from = store.steps[steady.front()].begin;
  for (std::size_t k = 0; k + 1 < steady.size(); ++k) {
    if (!evaluates(steady[k], steady[k + 1])) continue;
    out.push_back({from, store.steps[steady[k]].end});
    from = store.steps[steady[k + 1]].begin;
  }
  out.push_back({from, store.steps[steady.back()].end});
  return out;
}

}  // namespace

bool ran_out_of_memory(const Store& store, const StepRow& step) {
  return std::ranges::any_of(store.ooms, [&](const auto& o) { return o.row.final && o.pos >= step.begin && o.pos < step.end; });
}

bool in_evaluation(const Store& store, Moment at) {
  const Moment pos = at == 0 ? 0 : at - 1;
  for (const StepRow& step : store.steps)
    if (step.begin <= pos && pos < step.end) return store.name(step.kind) == "evaluate";
  std::uint32_t ref = pos < store.events() ? store.ref[pos] : kNone32;
  return ref != kNone32 && store.attributes_of(ref >> 1).stage() == Stage::evaluate;
}

Steady steady_state(const Store& store, std::span<const StepMeasure> measures) {
  Steady out;
  std::vector<std::size_t> train;
  for (std::size_t i = 0; i < measures.size() && i < store.steps.size(); ++i)
    if (store.name(store.steps[i].kind) == "train" && store.steps[i].open != kCutShort) train.push_back(i);
  if (train.empty())  // no training: the most common kind
    for (std::size_t i = 0; i < measures.size(); ++i) train.push_back(i);
  if (train.size() < 2) return out;
  // From the back: the highest peak, the most allocated and the most kept by any later step. A step is warm-up while it needs
  // clearly more than every later one (autotuning, tracing), or keeps more than any later one (the optimizer's slots).
  std::size_t n = train.size();
  std::vector<Bytes> peak(n), made(n), kept(n);
  auto growth = [&](std::size_t k) {
    const StepMeasure& m = measures[train[k]];
    return m.after > m.before ? m.after - m.before : 0;
  };
  peak[n - 1] = made[n - 1] = kept[n - 1] = 0;
  for (std::size_t k = n - 1; k-- > 0;) {
    const StepMeasure& later = measures[train[k + 1]];
    peak[k] = std::max(peak[k + 1], later.peak);
    made[k] = std::max(made[k + 1], later.allocated);
    kept[k] = std::max(kept[k + 1], growth(k + 1));
  }
  std::size_t first = 1;  // the first step always traces and creates
  auto exceeds = [](Bytes mine, Bytes later) { return mine > later + later / 50 + 4096; };
  while (first + 1 < n && first <= n / 2) {
    const StepMeasure& m = measures[train[first]];
    if (!exceeds(m.peak, peak[first]) && !exceeds(m.allocated, made[first]) && !exceeds(growth(first), kept[first]) &&
        store.steps[train[first]].retraced == 0)
      break;
    ++first;
  }
  out = {true, train[first], train[n - 1], store.steps[train[first]].begin, store.steps[train[n - 1]].end, {}};
  out.training = training_of(store, std::span(train).subspan(first));
  return out;
}

}  // namespace vramscope::analyze
