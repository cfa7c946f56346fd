#include "analyze/steps/step_marks.h"

#include <algorithm>

#include "analyze/framework.h"

namespace vramscope::analyze {

using trace::MarkEdge;
using trace::MarkKind;

std::string_view step_kind(const trace::Dictionaries& dictionaries, const trace::Mark& mark) {
  if (mark.kind != MarkKind::batch) return "train";
  std::string_view word = text_of(dictionaries, mark.name);
  if (word == "test" || word == "validation" || word == "eval") return "evaluate";
  return word.empty() || word == "batch" ? "train" : word;
}

bool is_tracing(const trace::Dictionaries& dictionaries, const trace::Mark& mark) {
  return mark.kind == MarkKind::retrace ||
         (mark.kind == MarkKind::phase && mark.edge == MarkEdge::begin && text_of(dictionaries, mark.name) == "trace");
}

StepMarks::StepMarks(const Tables& tables, const trace::Dictionaries& dictionaries) : dictionaries_(dictionaries) {
  begin_by_allocating_ = std::ranges::any_of(
      dictionaries.pools, [](const auto& pool) { return framework(pool.framework).steps_begin_by_allocating; });
  for (const auto& oom : tables.ooms) last_work_ = std::max(last_work_, oom.pos + 1);
  has_optimizers_ =
      std::ranges::any_of(tables.marks, [&](const MarkAt& m) { return !applied_by(m).empty() && !by_hand(applied_by(m)); });
  for (const MarkAt& m : tables.marks) {
    const bool step = m.row.kind == MarkKind::step && counts(m);
    reports_steps_ = reports_steps_ || step || is_first_call(m);
    const bool phase = m.row.kind == MarkKind::phase && m.row.edge == MarkEdge::begin;
    if (phase && (text_of(dictionaries, m.row.name) == "forward" || text_of(dictionaries, m.row.name) == "backward"))
      last_work_ = std::max(last_work_, m.pos + 1);
    const bool eagerly = step && m.row.edge == MarkEdge::instant && is_optimizer(m);
    gradients_are_applied_ = gradients_are_applied_ || eagerly || (is_first_call(m) && purpose(m) != "gradients");
  }
}

bool StepMarks::is_step(const MarkAt& m) const {
  if (m.row.kind == MarkKind::step) return true;
  return m.row.kind == MarkKind::batch && (!reports_steps_ || kind(m) != "train");
}

bool StepMarks::is_first_call(const MarkAt& m) const {
  return m.row.kind == MarkKind::function && m.row.edge == MarkEdge::end && !detail(m).empty() && counts(m);
}

bool StepMarks::is_more(const MarkAt& m) const {
  return m.row.kind == MarkKind::function && m.row.edge == MarkEdge::instant && purpose(m) == "more" && counts(m);
}

std::string_view StepMarks::applied_by(const MarkAt& m) const {
  const std::size_t at = detail(m).find('@');
  const bool reports = m.row.kind == MarkKind::step || m.row.kind == MarkKind::function;
  return reports && at != std::string_view::npos ? detail(m).substr(at + 1) : std::string_view();
}

}  // namespace vramscope::analyze
