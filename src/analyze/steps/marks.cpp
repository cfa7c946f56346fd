// Steps as the training loop reports them: a state machine over its marks.
#include <algorithm>
#include <map>
#include <optional>

#include "analyze/steps/marks.h"
#include "analyze/steps/step_marks.h"
#include "analyze/steps/turns.h"

namespace vramscope::analyze {
namespace {

using trace::MarkEdge;
using trace::MarkKind;

constexpr std::int64_t kMostBatches = 1'000'000'000;  // numbers in a trace may be anything

// PyTorch: a step starts after what ran without gradients since the previous one. If that is rare, it was an evaluation and does
// not belong to the step; if it is the rule (a teacher, frozen layers), it does, and the step starts earlier.
struct EarlierStart {
  std::uint64_t begin = 0, begin_us = 0;
};

struct ThreadState {
  std::optional<StepRow> open;          // steps do not nest: one that did not end found no more data
  std::optional<EarlierStart> earlier;  // of the open step
  std::vector<StepRow> functions;       // that are running
  std::int64_t first_batch = -1;
  std::uint64_t batch_begin = 0;
  std::size_t last = kNone32;        // the step that ended last
  std::optional<StepRow> gradients;  // computed since then, and not yet applied
};

class StepMachine {
 public:
  StepMachine(const Tables& tables, const trace::Dictionaries& dictionaries, NameTable& names)
      : tables_(tables), step_marks_(tables, dictionaries), names_(names) {}

  std::vector<StepRow> run(std::uint64_t events, std::uint64_t end_us) {
    for (const MarkAt& m : tables_.marks) on_mark(m);
    finish_recording(events, end_us);
    std::ranges::stable_sort(steps_, {}, [](const Applied& a) { return a.step.begin; });
    return join_turns(steps_);
  }

 private:
  void on_mark(const MarkAt& m) {
    if (step_marks_.traces(m)) on_tracing();
    switch (m.row.kind) {
      case MarkKind::epoch:
        return on_epoch(m, threads_[m.thread]);
      case MarkKind::batch:
        return on_batch(m, threads_[m.thread]);
      case MarkKind::function:
        return on_function(m, threads_[m.thread]);
      case MarkKind::step:
        return on_step(m, threads_[m.thread]);
      case MarkKind::tape:
        if (m.row.edge == MarkEdge::begin && first_tape_ == nullptr) first_tape_ = &m;
        return;
      default:
        return;
    }
  }

  void on_tracing() {
    for (auto& [thread, state] : threads_)
      if (state.open) state.open->retraced = 1;
  }

  void on_epoch(const MarkAt& m, ThreadState& mine) {
    if (m.row.edge == MarkEdge::end)
      mine.open.reset();
    else
      ++epoch_;
  }

  void on_batch(const MarkAt& m, ThreadState& mine) {
    if (m.row.edge == MarkEdge::begin) {
      mine.first_batch = m.row.number;
      mine.batch_begin = m.pos;
    }
    if (step_marks_.is_step(m)) return on_step(m, mine);
    if (m.row.edge == MarkEdge::end) count_batches(m, mine);
  }

  void on_function(const MarkAt& m, ThreadState& mine) {
    if (step_marks_.is_more(m) && last_instant_ != nullptr && last_by_hand_ < steps_.size()) {
      steps_[last_by_hand_].step.end = m.pos;
      steps_[last_by_hand_].step.end_us = m.time_us;
      last_instant_ = &m;
    }
    if (m.row.edge == MarkEdge::begin) mine.functions.push_back(start_at(m));
    if (m.row.edge != MarkEdge::end || mine.functions.empty()) return;
    if (step_marks_.is_first_call(m)) {
      mine.functions.back().retraced = 1;
      mine.functions.back().batches = step_marks_.loops(m) ? 0 : 1;
      finish_function(mine.functions.back(), m, mine);
    }
    mine.functions.pop_back();
  }

  void on_step(const MarkAt& m, ThreadState& mine) {
    if (m.row.edge == MarkEdge::begin)
      begin_step(m, mine);
    else if (m.row.edge == MarkEdge::end)
      end_step(m, mine);
    else if (step_marks_.counts(m))
      on_instant(m, mine);
  }

  void begin_step(const MarkAt& m, ThreadState& mine) {
    if (!mine.open || !step_marks_.is_again(m))
      mine.earlier.reset();
    else if (!mine.earlier)
      mine.earlier = EarlierStart{mine.open->begin, mine.open->begin_us};
    mine.open = start_at(m);
  }

  void end_step(const MarkAt& m, ThreadState& mine) {
    if (!mine.open) return;
    StepRow step = *mine.open;
    mine.open.reset();
    if (!step_marks_.counts(m)) return;
    if (step_marks_.loops(m)) step.batches = 0;
    const std::size_t known = steps_.size();
    finish_function(step, m, mine);
    if (mine.earlier && steps_.size() > known) begun_again_.emplace(steps_.size() - 1, *mine.earlier);
    if (m.row.kind == MarkKind::batch) count_batches(m, mine);
  }

  // An instant is the start of a step, which lasts until the next one, except for an optimizer's: that is the end of one.
  void on_instant(const MarkAt& m, ThreadState& mine) {
    if (last_instant_ != nullptr || step_marks_.is_optimizer(m)) {
      StepRow step = start_at(m);
      step.begin = last_instant_ != nullptr ? last_instant_->pos : 0;
      step.begin_us = last_instant_ != nullptr ? last_instant_->time_us : 0;
      finish(step, m.pos, m.time_us, step_marks_.applied_by(m));
      if (by_hand(step_marks_.applied_by(m))) last_by_hand_ = steps_.size() - 1;
    }
    last_instant_ = &m;
    mine.gradients.reset();
  }

  // A step whose function has ended, or the gradients for one.
  void finish_function(StepRow step, const MarkAt& m, ThreadState& mine) {
    if (step_marks_.only_gradients(m)) {
      if (!mine.gradients) mine.gradients = step;
      mine.gradients->retraced |= step.retraced;
      return;
    }
    if (mine.gradients && m.row.kind != MarkKind::batch) {
      step.begin = mine.gradients->begin;
      step.begin_us = mine.gradients->begin_us;
      step.retraced |= mine.gradients->retraced;
      mine.gradients.reset();
    }
    finish(step, m.pos, m.time_us, step_marks_.applied_by(m));
    mine.last = steps_.size() - 1;
  }

  // steps_per_execution: a step runs the batches from the number at its start to the number at its end.
  void count_batches(const MarkAt& m, const ThreadState& mine) {
    if (mine.last >= steps_.size() || steps_[mine.last].step.begin < mine.batch_begin) return;
    if (mine.first_batch < 0 || mine.first_batch > kMostBatches) return;
    const std::int64_t last_batch = std::clamp(m.row.number, mine.first_batch, mine.first_batch + kMostBatches);
    steps_[mine.last].step.batches = static_cast<std::uint32_t>(last_batch - mine.first_batch) + 1;
  }

  // The step in which the recording ended is kept: an out-of-memory error often occurs in it.
  void finish_recording(std::uint64_t events, std::uint64_t end_us) {
    if (last_instant_ != nullptr && !step_marks_.is_optimizer(*last_instant_)) {
      StepRow step = start_at(*last_instant_);
      step.open = kLastOne;
      finish(step, events, end_us, {});
    }
    if (const auto step = failed_under_tape()) finish(*step, events, end_us, {});
    if (begun_again_.size() * 2 > steps_.size())
      for (auto [i, from] : begun_again_) {
        steps_[i].step.begin = from.begin;
        steps_[i].step.begin_us = from.begin_us;
      }
    for (auto& [thread, state] : threads_) {
      if (!state.open || step_marks_.is_idle_since(state.open->begin)) continue;
      state.open->open = kCutShort;
      finish(*state.open, events, end_us, {});
    }
  }

  // An eager loop reports a step when its optimizer has run. In one that did not come so far, a tape was recording when memory
  // ran out.
  std::optional<StepRow> failed_under_tape() {
    const auto failed_since = [&](const MarkAt& m) {
      return std::ranges::any_of(tables_.ooms, [&](const auto& oom) { return oom.pos >= m.pos; });
    };
    if (first_tape_ == nullptr || !failed_since(*first_tape_)) return std::nullopt;
    StepRow step = start_at(last_instant_ != nullptr ? *last_instant_ : *first_tape_);
    step.open = kCutShort;
    return step;
  }

  StepRow start_at(const MarkAt& m) {
    StepRow step;
    step.kind = names_.id(step_marks_.kind(m));
    step.epoch = epoch_;
    step.begin = m.pos;
    step.begin_us = m.time_us;
    return step;
  }

  void finish(StepRow step, std::uint64_t pos, std::uint64_t time_us, std::string_view by) {
    step.end = pos;
    step.end_us = time_us;
    steps_.push_back({step, names_.id(by)});
    first_tape_ = nullptr;
  }

  const Tables& tables_;
  const StepMarks step_marks_;
  NameTable& names_;
  std::map<std::uint32_t, ThreadState> threads_;
  std::vector<Applied> steps_;
  std::map<std::size_t, EarlierStart> begun_again_;  // by place in steps_
  std::int64_t epoch_ = 0;
  const MarkAt* last_instant_ = nullptr;
  const MarkAt* first_tape_ = nullptr;  // since the last step
  std::size_t last_by_hand_ = kNone32;
};

}  // namespace

StepsFound reported_steps(const Tables& tables, const trace::Dictionaries& dictionaries, std::uint64_t events,
                          std::uint64_t end_us, NameTable& names) {
  StepsFound out;
  out.steps = StepMachine(tables, dictionaries, names).run(events, end_us);
  std::map<std::uint32_t, std::int64_t> count;  // by kind of step
  for (StepRow& step : out.steps) step.number = ++count[step.kind];
  out.source = out.steps.empty() ? StepSource::none : StepSource::reported;
  return out;
}

}  // namespace vramscope::analyze
