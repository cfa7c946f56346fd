#include "analyze/step_marks.h"

#include <algorithm>
#include <functional>
#include <map>

namespace vramscope::analyze {

std::uint32_t NameTable::id(std::string_view text) {
  if (text.empty()) return 0;
  if ((used_ + 1) * 2 > slots_.size()) grow();
  std::uint64_t hash = std::hash<std::string_view>{}(text);
  for (std::size_t i = hash % slots_.size();; i = (i + 1) % slots_.size()) {
    auto& [h, slot] = slots_[i];
    if (slot == 0) {
      h = hash;
      slot = static_cast<std::uint32_t>(texts_.size()) + 1;
      texts_.emplace_back(text);
      ++used_;
      return slot - 1;
    }
    if (h == hash && texts_[slot - 1] == text) return slot - 1;
  }
}

void NameTable::grow() {
  auto old = std::move(slots_);
  slots_.assign(std::max<std::size_t>(64, old.size() * 2), {0, 0});
  for (auto [h, slot] : old) {
    if (slot == 0) continue;
    std::size_t i = h % slots_.size();
    while (slots_[i].second != 0) i = (i + 1) % slots_.size();
    slots_[i] = {h, slot};
  }
}

namespace {

using MarkAt = Stamped<trace::Mark>;

std::string_view text(const trace::Dictionaries& words, trace::StringId id) {
  auto i = static_cast<std::size_t>(id);
  return i < words.strings.size() ? std::string_view(words.strings[i]) : std::string_view();
}

std::string_view step_kind(const trace::Dictionaries& words, const trace::Mark& mark) {
  if (mark.kind != trace::MarkKind::batch) return "train";
  std::string_view word = text(words, mark.name);
  if (word == "test" || word == "validation" || word == "eval") return "evaluate";
  return word.empty() || word == "batch" ? "train" : word;
}

// Which marks are steps. A program that tells steps tells batches too: then only those of evaluation and prediction count. A
// training function is known as one only after its first call, which was told as a plain function.
class StepMarks {
 public:
  StepMarks(const Tables& tables, const trace::Dictionaries& words) : words_(words) {
    for (const MarkAt& m : tables.marks) {
      if (m.row.kind != trace::MarkKind::step) continue;
      if (!any_) first_ = m.pos, function_ = m.row.name;
      any_ = true;
    }
  }
  bool is_step(const MarkAt& m) const {
    if (m.row.kind == trace::MarkKind::step) return true;
    if (m.row.kind == trace::MarkKind::batch) return !any_ || step_kind(words_, m.row) != "train";
    return any_ && m.row.kind == trace::MarkKind::function && m.pos <= first_ && m.row.name == function_;
  }

 private:
  const trace::Dictionaries& words_;
  bool any_ = false;
  std::uint64_t first_ = 0;
  trace::StringId function_{};
};

bool is_tracing(const trace::Dictionaries& words, const trace::Mark& mark) {
  return mark.kind == trace::MarkKind::retrace ||
         (mark.kind == trace::MarkKind::phase && mark.edge == trace::MarkEdge::begin && text(words, mark.name) == "trace");
}

}  // namespace

StepsFound told_steps(const Tables& tables, const trace::Dictionaries& words, std::uint64_t events, std::uint64_t end_us,
                      NameTable& names) {
  StepsFound out;
  StepMarks step_marks(tables, words);
  std::int64_t epoch = 0;
  std::map<std::uint32_t, std::vector<StepRow>> open;  // by thread
  std::map<std::uint32_t, std::int64_t> count;         // by kind of step
  const MarkAt* last_instant = nullptr;
  // steps_per_execution: the batch number jumps by as many batches as one step runs.
  std::int64_t last_batch = 0, last_epoch = -1, jump = 1;
  auto count_batches = [&](std::int64_t batch, std::int64_t in_epoch) {
    if (in_epoch == last_epoch && batch > last_batch) jump = batch - last_batch;
    last_batch = batch;
    last_epoch = in_epoch;
  };
  auto finish = [&](StepRow step, std::uint64_t pos, std::uint64_t time_us) {
    step.end = pos;
    step.end_us = time_us;
    step.number = ++count[step.kind];
    out.steps.push_back(step);
  };
  for (const MarkAt& m : tables.marks) {
    if (m.row.kind == trace::MarkKind::epoch && m.row.edge != trace::MarkEdge::end) epoch += 1;
    if (m.row.kind == trace::MarkKind::epoch && m.row.edge == trace::MarkEdge::end) open[m.thread].clear();
    if (m.row.kind == trace::MarkKind::batch && m.row.edge == trace::MarkEdge::begin) count_batches(m.row.number, epoch);
    if (is_tracing(words, m.row))
      for (auto& [thread, steps] : open)
        for (StepRow& step : steps) step.retraced = 1;
    if (!step_marks.is_step(m)) continue;
    StepRow step;
    step.kind = names.id(step_kind(words, m.row));
    step.epoch = epoch;
    step.begin = m.pos;
    step.begin_us = m.time_us;
    auto& mine = open[m.thread];
    if (m.row.edge == trace::MarkEdge::begin) {
      mine.clear();  // steps do not nest: one that did not end found no more data
      mine.push_back(step);
    } else if (m.row.edge == trace::MarkEdge::end) {
      if (mine.empty()) continue;
      finish(mine.back(), m.pos, m.time_us);
      mine.pop_back();
    } else {                                               // instants: a step lasts until the next one
      bool ends = text(words, m.row.name) == "optimizer";  // told after each step, not before it
      if (last_instant != nullptr || ends) {
        step.begin = last_instant != nullptr ? last_instant->pos : 0;
        step.begin_us = last_instant != nullptr ? last_instant->time_us : 0;
        finish(step, m.pos, m.time_us);
      }
      last_instant = &m;
    }
  }
  if (last_instant != nullptr && text(words, last_instant->row.name) != "optimizer") {
    StepRow step;
    step.kind = names.id(step_kind(words, last_instant->row));
    step.epoch = epoch;
    step.begin = last_instant->pos;
    step.begin_us = last_instant->time_us;
    step.open = 1;
    finish(step, events, end_us);
  }
  // The step in which the recording ended is kept: an OOM often lies in it.
  for (auto& [thread, steps] : open)
    for (StepRow& step : steps) {
      step.open = 1;
      finish(step, events, end_us);
    }
  std::ranges::sort(out.steps, {}, &StepRow::begin);
  count.clear();
  for (StepRow& step : out.steps) step.number = ++count[step.kind];
  for (StepRow& step : out.steps) step.batches = static_cast<std::uint32_t>(jump);
  out.source = out.steps.empty() ? 0 : 1;
  return out;
}

}  // namespace vramscope::analyze
