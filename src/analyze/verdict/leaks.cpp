// Does it grow, what grows, how fast, since when; or why there is no answer.
#include <algorithm>

#include <fmt/format.h>

#include "analyze/query/block_text.h"
#include "analyze/query/state.h"
#include "analyze/verdict/keeper.h"
#include "analyze/verdict/leak_origin.h"
#include "analyze/verdict/leak_text.h"
#include "analyze/verdict/remedies.h"
#include "analyze/verdict/replaced.h"
#include "analyze/verdict/series.h"
#include "analyze/verdict/survivors.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

constexpr std::size_t kFewestSteps = 5;  // below it there is nothing to compare

LeakRow row_of(const Store& store, const Origin& origin, const OriginVerdict& verdict, const StepWindow& window) {
  LeakRow row;
  Block block = block_of(store, origin.example);
  row.category = block.category;
  row.layer = block.layer;
  row.op = block.op;
  row.line = block.line;
  row.shape = block.shape;
  row.block_bytes = origin.largest;
  row.bytes_per_step = verdict.rate.value;
  row.low = verdict.rate.low;
  row.high = verdict.rate.high;
  row.since_step = store.steps[window.steps[verdict.first]].number;
  row.blocks = origin.kept_blocks;
  row.so_far = origin.kept_bytes;
  row.replaced = origin.replaced;
  row.examples = origin.oldest;
  return row;
}

// Judges origin by origin and adds up what grows.
class Growth {
 public:
  Growth(const Store& store, const StepWindow& window, Leaks& out) : store_(store), window_(window), out_(out) {
    rest_.kept.assign(steps(), 0);
    rest_.level.assign(steps(), 0);
    per_step_.assign(steps(), 0);
    first_ = steps();
  }

  void judge_survivors(const std::vector<Origin>& origins) {
    for (const Origin& origin : origins) {
      const OriginVerdict verdict = judge(origin, steps());
      if (verdict.state == OriginVerdict::growing) {
        add(origin, verdict);
        keys_.push_back(origin.key);
      } else {
        keep_undecided(origin, verdict);
      }
    }
    // Origins that each keep a little only once may still add up: what no origin explains is one more origin.
    if (OriginVerdict verdict = judge(rest_, steps()); verdict.state == OriginVerdict::growing && rest_.kept_blocks > 0) {
      LeakRow& row = add(rest_, verdict);
      row.op = "many origins, each of them rarely";
      row.line.clear();
    }
  }

  void judge_replaced(const std::vector<Origin>& origins) {
    for (const Origin& origin : origins) {
      if (std::ranges::find(keys_, origin.key) != keys_.end()) continue;
      const OriginVerdict verdict = judge(origin, steps());
      if (verdict.state == OriginVerdict::slowing) ++undecided_.slowing;
      if (verdict.state == OriginVerdict::growing) add(origin, verdict);
    }
  }

  void conclude() {
    std::ranges::stable_sort(out_.rows, [](const LeakRow& a, const LeakRow& b) { return a.bytes_per_step > b.bytes_per_step; });
    if (out_.rows.empty()) return explain_no_growth(out_, steps(), undecided_);
    out_.verdict = "growing";
    out_.since_step = out_.step_number[first_];
    Interval rate{out_.rows[0].bytes_per_step, out_.rows[0].low, out_.rows[0].high};
    if (out_.rows.size() > 1) {
      const std::size_t settled = steps() > first_ + wait_ ? steps() - first_ - wait_ : 1;
      rate = mean_interval(std::span<const double>(per_step_.data() + first_, settled));
      rate.low = std::max(0.0, rate.low);
    }
    out_.bytes_per_step = rate.value;
    out_.low = rate.low;
    out_.high = rate.high;
  }

 private:
  std::size_t steps() const { return window_.steps.size(); }

  LeakRow& add(const Origin& origin, const OriginVerdict& verdict) {
    first_ = std::min(first_, verdict.first);
    wait_ = std::max(wait_, 1 + (origin.freed_blocks > 0 ? origin.longest_freed : 0));
    for (std::size_t i = 0; i < steps(); ++i) per_step_[i] += origin.kept[i];
    out_.so_far += origin.kept_bytes;
    return out_.rows.emplace_back(row_of(store_, origin, verdict, window_));
  }

  void keep_undecided(const Origin& origin, const OriginVerdict& verdict) {
    if (verdict.state == OriginVerdict::slowing) ++undecided_.slowing;
    if (verdict.state == OriginVerdict::noisy) ++undecided_.noisy;
    if (verdict.state != OriginVerdict::few || origin.freed_blocks > 0) return;
    if (verdict.events >= 2) {
      ++undecided_.few;
      undecided_.seen = std::max(undecided_.seen, verdict.events);
    }
    undecided_.few_bytes += static_cast<double>(origin.kept_bytes);
    if (rest_.kept_blocks == 0) rest_.example = origin.example;
    for (std::size_t i = 0; i < steps(); ++i) rest_.kept[i] += origin.kept[i];
    rest_.kept_blocks += origin.kept_blocks;
    rest_.kept_bytes += origin.kept_bytes;
    rest_.largest = std::max(rest_.largest, origin.largest);
    for (std::uint64_t id : origin.oldest)
      if (rest_.oldest.size() < Origin::kExamples) rest_.oldest.push_back(id);
  }

  const Store& store_;
  const StepWindow& window_;
  Leaks& out_;
  Origin rest_;  // all that kept something too rarely
  Undecided undecided_;
  std::vector<double> per_step_;     // bytes kept by what grows
  std::size_t first_, wait_ = 1;     // window step of the first growth; steps at the end whose blocks may still be freed
  std::vector<std::uint64_t> keys_;  // of the origins that grow
};

// Why the recording cannot show growth at all; empty: it can.
std::string why_not_judged(const Engine& engine, const StepWindow& window, int place) {
  const Engine::State& s = engine.state();
  if (const std::uint64_t lost = s.figures.lost_events; lost > 0)
    return fmt::format("{} lost, and a block whose free is among them looks like a leak",
                       support::format_plural(lost, "event was", "events were"));
  const std::size_t n = window.steps.size();
  if (n >= kFewestSteps && s.store.name(s.store.steps[window.steps.front()].kind) == "predict")
    return "only predict() was recorded, which keeps the outputs of all batches until it returns";
  if (n >= kFewestSteps) return {};
  return s.store.steps.empty()
             ? fmt::format("the trace has no steps ({})", engine.steps(place).why)
             : fmt::format("{} after warm-up, at least {} are needed", support::format_plural(n, "step", "steps"), kFewestSteps);
}

// What the steps of a place measure, of matching blocks only.
Result<std::vector<StepMeasure>> measures_of(const Engine::State& s, int place, std::string_view where) {
  const bool is_main = place < 0 || place == s.main;
  if (is_main && where.empty()) return s.measures;
  auto view = s.total(place, where);
  if (!view) return std::unexpected(view.error());
  return measure_steps(s.store, *(*view)->grouper, (*view)->pyramid, s.threads);
}

}  // namespace

Result<Leaks> Engine::leaks(int place_index, std::string_view where) const {
  const State& s = *state_;
  const Store& store = s.store;
  auto place = s.place(place_index);
  if (!place) return std::unexpected(place.error());
  auto filter = s.filter(where, kNever, place_index);
  if (!filter) return std::unexpected(filter.error());
  Leaks out;
  const StepWindow window = examined_steps(s);
  out.why = why_not_judged(*this, window, place_index);
  if (!out.why.empty()) {
    out.verdict = "cannot tell";
    out.sentence = leak_sentence(out, store, window);
    return out;
  }
  auto measures = measures_of(s, place_index, where);
  if (!measures) return std::unexpected(measures.error());
  for (std::size_t i : window.steps) {
    out.step_number.push_back(store.steps[i].number);
    out.left_after.push_back((*measures)[i].after);
  }
  const Grouper grouper(store, s.pools(**place), &*filter);
  Growth growth(store, window, out);
  growth.judge_survivors(survivors(store, grouper, window));
  growth.judge_replaced(replaced(store, grouper, window));
  growth.conclude();
  if (out.verdict == "growing") {
    if ((*place)->limit > (*place)->peak && out.bytes_per_step >= 1 && s.failures() == 0)
      out.steps_to_full = static_cast<double>((*place)->limit - (*place)->peak) / out.bytes_per_step;
    const std::vector<Keeper> all = keepers(s, out.rows);
    const Keeper* const keeper = main_keeper(store, all, out.rows);
    out.advice = leak_advice(out, keeper, framework_of(store, **place));
    out.sentence = growing_sentence(out, keeper);
    return out;
  }
  out.sentence = leak_sentence(out, store, window);
  return out;
}

}  // namespace vramscope::analyze
