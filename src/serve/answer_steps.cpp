// Steps, layers and leaks: tables whose rows the analysis made.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyze/absent.h"
#include "analyze/captions.h"
#include "analyze/gen/texts.h"
#include "analyze/query/filter_text.h"
#include "analyze/query/instant_text.h"
#include "serve/answer_parts.h"
#include "serve/engine_service.h"
#include "support/sentence.h"

namespace vramscope::serve {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
// Beyond, a bar is about as thin as a pixel and shows the highest of its neighbours.
constexpr std::size_t kStackedSteps = 500;

double known(analyze::Bytes bytes) { return bytes == 0 ? kUnknown : static_cast<double>(bytes); }

// What each step's peak is made of, by category. Of very many steps, each stretch of neighbours gets what its highest one is made
// of.
void fill_stack(const analyze::Engine& engine, const analyze::Steps& steps, const std::string& filter, Steps& out) {
  for (const std::string_view name : analyze::category_names()) out.categories.emplace_back(name);
  const std::size_t n = steps.steps.size();
  out.stack.assign(out.categories.size() * n, 0);
  const auto fill = [&](std::size_t source, std::size_t first, std::size_t last) {
    const auto live = engine.live({.at = fmt::format("moment:{}", steps.steps[source].peak_at), .where = filter, .limit = 0});
    if (!live) return;
    for (const analyze::Group& group : live->groups) {
      const auto c = static_cast<std::size_t>(std::find(out.categories.begin(), out.categories.end(), group.keys[0]) -
                                              out.categories.begin());
      if (c < out.categories.size())
        std::fill(out.stack.begin() + static_cast<std::ptrdiff_t>(c * n + first),
                  out.stack.begin() + static_cast<std::ptrdiff_t>(c * n + last), static_cast<double>(group.bytes));
    }
  };
  const std::size_t every = n / kStackedSteps + 1;
  for (std::size_t first = 0; first < n; first += every) {
    const std::size_t last = std::min(n, first + every);
    const auto highest = std::max_element(steps.steps.begin() + static_cast<std::ptrdiff_t>(first),
                                          steps.steps.begin() + static_cast<std::ptrdiff_t>(last),
                                          [](const analyze::Step& a, const analyze::Step& b) { return a.peak < b.peak; });
    fill(static_cast<std::size_t>(highest - steps.steps.begin()), first, last);
  }
}

void fill_epochs(const analyze::Steps& steps, Steps& out) {
  for (const analyze::Step& step : steps.steps) {
    if (step.epoch == 0 || (step.kind != "train" && !step.kind.empty())) continue;
    const std::string name = fmt::format("epoch {}", step.epoch);
    if (out.epochs.empty() || out.epochs.back().name != name) out.epochs.push_back({name, step.number, step.number});
    out.epochs.back().last = step.number;
  }
}

}  // namespace

Result<Steps> EngineService::steps(const StepsParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const analyze::Engine& engine = (*found)->engine();
  if (const auto nothing = analyze::absence_of_matches(engine, params.filter)) {
    Steps none;
    none.sentence = analyze::kNoMatch;
    none.empty = *nothing;
    return none;
  }
  const Result<analyze::Steps> filtered =
      params.filter.empty() ? Result<analyze::Steps>((*found)->steps()) : engine.steps(-1, params.filter);
  if (!filtered) return std::unexpected(filtered.error());
  const analyze::Steps& steps = *filtered;
  Steps out;
  out.sentence = steps.sentence;
  out.source = steps.source;
  out.note = steps.note;
  out.empty = analyze::absence(steps);
  if (out.empty) return out;
  out.phases = {"forward", "backward", "optimizer"};
  const std::size_t n = steps.steps.size();
  out.phase_peak.assign(3 * n, kUnknown);
  for (std::size_t i = 0; i < n; ++i) {
    const analyze::Step& step = steps.steps[i];
    out.number.push_back(static_cast<double>(step.number));
    out.t0.push_back(static_cast<double>(step.begin_us));
    out.t1.push_back(static_cast<double>(step.end_us));
    out.peak.push_back(static_cast<double>(step.peak));
    out.peak_moment.push_back(static_cast<double>(step.peak_at));
    out.left.push_back(static_cast<double>(step.after));
    out.allocated.push_back(static_cast<double>(step.allocated));
    out.count.push_back(static_cast<double>(step.allocs));
    out.phase_peak[i] = known(step.forward_peak);
    out.phase_peak[n + i] = known(step.backward_peak);
    out.phase_peak[2 * n + i] = known(step.optimizer_peak);
    if (step.outlier || step.warmup)
      out.outliers.push_back({step.number, step.why.empty() && step.warmup ? "warm-up" : step.why});
  }
  fill_stack(engine, steps, params.filter, out);
  fill_epochs(steps, out);
  if (steps.has_steady) {
    out.steady_first = steps.steps[steps.steady_first].number;
    out.steady_last = steps.steps[steps.steady_last].number;
  }
  return out;
}

Result<Layers> EngineService::layers(const LayersParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  if (const auto nothing = analyze::absence_of_matches(engine, params.filter)) {
    Layers none;
    none.sentence = analyze::kNoMatch;
    none.empty = *nothing;
    return none;
  }
  const auto layers = engine.layers(usable_instant(engine, params.at), -1, params.filter);
  if (!layers) return std::unexpected(layers.error());
  Layers out;
  out.sentence = layers->sentence;
  out.t = static_cast<double>(engine.time_of(layers->at));
  out.note = analyze::caption(engine, *layers);
  out.rows = layers->rows;
  for (const LayerRow& row : layers->rows) {
    out.own_peaks.push_back(analyze::instant_text(engine, row.own_peak_at));
    out.filters.push_back(row.name.empty() ? "" : analyze::filter_term("layer", row.name));
  }
  if (params.filter.empty()) out.empty = analyze::absence(*layers);
  return out;
}

Result<Leaks> EngineService::leaks(const LeaksParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  if (const auto nothing = analyze::absence_of_matches(engine, params.filter)) {
    Leaks none;
    none.verdict = "cannot tell";
    none.sentence = analyze::kNoMatch;
    none.note = nothing->message;
    return none;
  }
  const Result<analyze::Leaks> leaks = params.filter.empty() ? trace.leaks() : engine.leaks(-1, params.filter);
  if (!leaks) return std::unexpected(leaks.error());
  Leaks out;
  out.verdict = leaks->verdict;
  out.sentence = leaks->sentence;
  out.note = support::as_sentence(leaks->why.empty() ? leaks->advice : leaks->why);
  out.number = column(leaks->step_number);
  out.left = column(leaks->left_after);
  const std::uint64_t end = trace.overview().duration_us;
  out.growers = leaks->rows;
  for (const LeakRow& row : leaks->rows)
    for (const std::uint64_t id : row.examples)
      if (const auto block = engine.allocation(id); block && out.examples.size() < 20)
        out.examples.push_back(row_of(*block, end, row.so_far));
  return out;
}

}  // namespace vramscope::serve
