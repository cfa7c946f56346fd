// Steps, layers, leaks and OOMs: tables whose rows the analysis made.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "serve/engine_service.h"
#include "serve/words.h"

namespace vramscope::serve {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
// Beyond, a bar is about as thin as a pixel and shows the highest of its neighbours.
constexpr std::size_t kStackedSteps = 500;

double known(analyze::Bytes bytes) { return bytes == 0 ? kUnknown : static_cast<double>(bytes); }

// What each step's peak is made of, by category. Of very many steps, each stretch of neighbours gets what its highest one is made
// of.
void fill_stack(const analyze::Engine& engine, const analyze::Steps& steps, Steps& out) {
  for (const std::string_view name : analyze::category_names()) out.categories.emplace_back(name);
  const std::size_t n = steps.steps.size();
  out.stack.assign(out.categories.size() * n, 0);
  const auto fill = [&](std::size_t source, std::size_t first, std::size_t last) {
    const auto live = engine.live({.at = fmt::format("moment:{}", steps.steps[source].peak_at), .where = {}, .limit = 0});
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
  const analyze::Steps& steps = (*found)->steps();
  Steps out;
  out.sentence = steps.sentence;
  out.source = steps.source;
  out.note = steps.source == "told"    ? "Steps are marked by the training loop."
             : steps.source == "found" ? "Steps were found as repeated function runs; no marks were recorded."
                                       : "";
  if (steps.steps.empty()) {
    out.empty = Damage{
        "No steps were found", sentence(steps.why),
        "Train for at least 5 steps, or mark them: `with vramscope.step(): …`. Timeline, Peak and Pool map work without steps."};
    return out;
  }
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
  fill_stack((*found)->engine(), steps, out);
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
  const auto layers = engine.layers(usable_instant(engine, params.at), -1, params.filter);
  if (!layers) return std::unexpected(layers.error());
  Layers out;
  out.sentence = layers->sentence;
  out.t = static_cast<double>(engine.time_of(layers->at));
  out.note =
      fmt::format("At {:.6f} s, in model order. The last column is each layer's own maximum, whenever it was.", out.t / 1e6);
  for (const analyze::LayerRow& row : layers->rows)
    out.rows.push_back({.name = row.name,
                        .line = row.line,
                        .parameters = static_cast<double>(row.parameters),
                        .optimizer = static_cast<double>(row.optimizer_state),
                        .activations = static_cast<double>(row.activations),
                        .gradients = static_cast<double>(row.gradients),
                        .temporaries = static_cast<double>(row.temporaries),
                        .inputs = static_cast<double>(row.inputs),
                        .other = static_cast<double>(row.other),
                        .at_peak = static_cast<double>(row.total),
                        .max = static_cast<double>(row.own_peak),
                        .max_at = fmt::format("moment:{}", row.own_peak_at)});
  if (out.rows.empty() || (out.rows.size() == 1 && out.rows[0].name.empty()))
    out.empty = Damage{"No layers are known", "The recording holds no layer marks, and op names do not carry layers.",
                       "Record a Keras or PyTorch model with `vramscope run`, which marks layers by itself."};
  return out;
}

Result<Leaks> EngineService::leaks(const LeaksParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const auto& leaks = trace.leaks();
  if (!leaks) return std::unexpected(leaks.error());
  Leaks out;
  out.verdict = leaks->verdict;
  out.sentence = leaks->sentence;
  out.note = sentence(leaks->why.empty() ? leaks->advice : leaks->why);
  out.number = column(leaks->step_number);
  out.left = column(leaks->left_after);
  const std::uint64_t end = trace.overview().duration_us;
  for (const analyze::LeakRow& row : leaks->rows) {
    out.growers.push_back({.category = row.category,
                           .layer = row.layer,
                           .op = row.op,
                           .line = row.line,
                           .since_step = row.since_step,
                           .blocks = row.blocks,
                           .per_step = row.bytes_per_step,
                           .low = row.low,
                           .high = row.high,
                           .total = static_cast<double>(row.so_far)});
    for (const std::uint64_t id : row.examples)
      if (const auto block = engine.allocation(id); block && out.examples.size() < 20)
        out.examples.push_back(row_of(*block, end, row.so_far));
  }
  return out;
}

Result<Ooms> EngineService::ooms(const OomsParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const analyze::Ooms& ooms = trace.ooms();
  const analyze::Place* place = main_place(engine);
  Ooms out;
  out.sentence = ooms.sentence;
  out.optional = ooms.optional_refusals;
  if (ooms.optional_refusals > 0)
    out.note = fmt::format("{} for optional workspaces did no harm.", plural(ooms.optional_refusals, "refusal", "refusals"));
  for (const analyze::OomEvent& event : ooms.events) {
    Oom oom;
    oom.t = static_cast<double>(event.time_us);
    if (event.step > 0) oom.step = event.step;
    oom.final = event.final;
    oom.device = place != nullptr ? place->name : "";
    oom.pool = event.pool;
    oom.requested = static_cast<double>(event.requested);
    oom.live = static_cast<double>(event.live);
    oom.held = static_cast<double>(event.regions);
    oom.free = static_cast<double>(event.free);
    oom.largest_free = static_cast<double>(event.largest_free);
    if (event.limit > 0) oom.limit = static_cast<double>(event.limit);
    oom.op = event.op;
    oom.layer = event.layer;
    oom.line = event.line;
    oom.verdict = event.verdict;
    oom.remedy = sentence(ooms.advice);
    for (const analyze::OomCause& cause : event.causes) {
      if (cause.cause == event.verdict) oom.cause = sentence(cause.evidence);
    }
    for (const std::string_view word : {"yes", "no", "unknown"}) {
      std::string causes;
      for (const analyze::OomCause& cause : event.causes)
        if (cause.would_fit == word) causes += fmt::format("{}{}", causes.empty() ? "" : ", ", cause.cause);
      if (!causes.empty()) oom.fits += fmt::format("{}{} without {}", oom.fits.empty() ? "" : "; ", word, causes);
    }
    for (const analyze::Group& group : event.live_set) {
      const auto key = [&](std::size_t i) { return i < group.keys.size() ? group.keys[i] : std::string(); };
      oom.rows.push_back({.id = group.example,
                          .category = key(0),
                          .layer = key(1),
                          .op = key(2),
                          .blocks = group.count,
                          .age_us = static_cast<double>(event.time_us > group.oldest_us ? event.time_us - group.oldest_us : 0),
                          .t = static_cast<double>(group.oldest_us),
                          .bytes = static_cast<double>(group.bytes),
                          .share = share_of(group.bytes, event.live)});
    }
    out.ooms.push_back(std::move(oom));
  }
  return out;
}

}  // namespace vramscope::serve
