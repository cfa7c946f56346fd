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

std::string_view step_kind(std::string_view word) {
  if (word.empty() || word == "step" || word == "batch" || word == "fit" || word == "train_batch") return "train";
  if (word == "test" || word == "validation" || word == "eval" || word == "evaluation") return "evaluate";
  return word;
}

}  // namespace

StepsFound told_steps(const Tables& tables, const trace::Dictionaries& words, std::uint64_t events, std::uint64_t end_us,
                      NameTable& names) {
  StepsFound out;
  auto any = [&](trace::MarkKind kind) {
    return std::ranges::any_of(tables.marks, [&](const MarkAt& m) { return m.row.kind == kind; });
  };
  trace::MarkKind wanted = any(trace::MarkKind::step) ? trace::MarkKind::step : trace::MarkKind::batch;
  std::int64_t epoch = 0;
  std::map<std::uint32_t, std::vector<StepRow>> open;  // by thread
  std::map<std::uint32_t, std::int64_t> count;         // by kind of step
  const MarkAt* last_instant = nullptr;
  auto finish = [&](StepRow step, std::uint64_t pos, std::uint64_t time_us) {
    step.end = pos;
    step.end_us = time_us;
    step.number = ++count[step.kind];
    out.steps.push_back(step);
  };
  for (const MarkAt& m : tables.marks) {
    if (m.row.kind == trace::MarkKind::epoch && m.row.edge != trace::MarkEdge::end) epoch += 1;
    if (m.row.kind == trace::MarkKind::retrace || m.row.kind == trace::MarkKind::function)
      for (auto& [thread, steps] : open)
        for (StepRow& step : steps) step.retraced = 1;
    if (m.row.kind != wanted) continue;
    StepRow step;
    step.kind = names.id(step_kind(text(words, m.row.name)));
    step.epoch = epoch;
    step.begin = m.pos;
    step.begin_us = m.time_us;
    auto& mine = open[m.thread];
    if (m.row.edge == trace::MarkEdge::begin) {
      mine.push_back(step);
    } else if (m.row.edge == trace::MarkEdge::end) {
      if (mine.empty()) continue;
      finish(mine.back(), m.pos, m.time_us);
      mine.pop_back();
    } else {  // instants: a step lasts until the next one
      if (last_instant != nullptr) {
        step.begin = last_instant->pos;
        step.begin_us = last_instant->time_us;
        finish(step, m.pos, m.time_us);
      }
      last_instant = &m;
    }
  }
  // The step in which the recording ended is kept: an OOM often lies in it.
  for (auto& [thread, steps] : open)
    for (const StepRow& step : steps) finish(step, events, end_us);
  std::ranges::sort(out.steps, {}, &StepRow::begin);
  count.clear();
  for (StepRow& step : out.steps) step.number = ++count[step.kind];
  out.source = out.steps.empty() ? 0 : 1;
  return out;
}

}  // namespace vramscope::analyze
