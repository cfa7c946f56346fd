// Which marks of a training loop are its steps.
#pragma once

#include <cstdint>
#include <string_view>

#include "analyze/index/scan.h"

namespace vramscope::analyze {

using MarkAt = Stamped<trace::Mark>;

// train, evaluate, predict, or the name of the mark itself.
std::string_view step_kind(const trace::Dictionaries& dictionaries, const trace::Mark& mark);

// A function was traced or compiled.
bool is_tracing(const trace::Dictionaries& dictionaries, const trace::Mark& mark);

// Gradients are applied by a numbered optimizer, or by hand to a numbered variable ("v7").
inline bool by_hand(std::string_view applied_by) { return applied_by.starts_with('v'); }

// A program that reports steps reports batches too: then only the batches of evaluation and prediction count. A function that
// only computes gradients is a step of its own, unless an optimizer is applied elsewhere: then it starts the step that applies
// them. Whether a function trains is known only when its first call ends: the call begins as a plain function, and its end
// reports what it was. The detail of a mark is the purpose of the call and, after an @, what applied the gradients; if an
// optimizer does that, variables that are written by hand are not steps.
class StepMarks {
 public:
  StepMarks(const Tables& tables, const trace::Dictionaries& dictionaries);
  bool is_step(const MarkAt& m) const;
  bool is_first_call(const MarkAt& m) const;
  bool counts(const MarkAt& m) const { return !has_optimizers_ || !by_hand(applied_by(m)); }
  // The program writes another variable in the step that was reported last.
  bool is_more(const MarkAt& m) const;
  bool only_gradients(const MarkAt& end) const { return gradients_are_applied_ && purpose(end) == "gradients"; }
  bool is_again(const MarkAt& begin) const { return purpose(begin) == "again"; }
  bool is_optimizer(const MarkAt& m) const { return text_of(dictionaries_, m.row.name) == "optimizer"; }
  // If a step starts with the first allocation after the previous one, the last start may be what the program does after
  // training.
  bool is_idle_since(std::uint64_t begin) const { return begin_by_allocating_ && begin >= last_work_; }
  bool loops(const MarkAt& end) const { return purpose(end) == "loop"; }
  std::string_view applied_by(const MarkAt& m) const;
  std::string_view kind(const MarkAt& m) const { return step_kind(dictionaries_, m.row); }
  bool traces(const MarkAt& m) const { return is_tracing(dictionaries_, m.row); }

 private:
  std::string_view detail(const MarkAt& m) const { return text_of(dictionaries_, m.row.detail); }
  std::string_view purpose(const MarkAt& m) const { return detail(m).substr(0, detail(m).find('@')); }

  const trace::Dictionaries& dictionaries_;
  bool reports_steps_ = false, gradients_are_applied_ = false, begin_by_allocating_ = false, has_optimizers_ = false;
  std::uint64_t last_work_ = 0;  // after the start of the last forward or backward pass, and after the last failed request
};

}  // namespace vramscope::analyze
