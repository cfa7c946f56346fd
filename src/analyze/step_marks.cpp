#include "analyze/step_marks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

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

constexpr std::int64_t kMostBatches = 1'000'000'000;  // numbers in a trace may be anything

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

// Gradients are applied by optimizers with a number, or by hand to a variable with one.
bool by_hand(std::string_view whom) { return whom.starts_with('v'); }

// Which marks are steps. A program that tells steps tells batches too: then only those of evaluation and prediction count. A
// function that only takes gradients is a step of its own unless an optimizer is applied elsewhere: then it is the beginning of
// the step that applies them. Whether a function trains is known when its first call ends: that one is told as a plain function,
// and what it was at its end. A mark's detail says what it was, and behind an @ by whom gradients were applied; where an
// optimizer does that, variables that are written by hand are no steps.
class StepMarks {
 public:
  StepMarks(const Tables& tables, const trace::Dictionaries& words) : words_(words) {
    torch_ = std::ranges::any_of(words.pools, [](const auto& pool) { return pool.framework == trace::Framework::pytorch; });
    for (const auto& oom : tables.ooms) last_work_ = std::max(last_work_, oom.pos + 1);
    optimizers_ = std::ranges::any_of(tables.marks, [&](const MarkAt& m) { return !by(m).empty() && !by_hand(by(m)); });
    for (const MarkAt& m : tables.marks) {
      bool step = m.row.kind == trace::MarkKind::step && counts(m);
      any_ = any_ || step || is_first_call(m);
      const bool phase = m.row.kind == trace::MarkKind::phase && m.row.edge == trace::MarkEdge::begin;
      if (phase && (text(words, m.row.name) == "forward" || text(words, m.row.name) == "backward"))
        last_work_ = std::max(last_work_, m.pos + 1);
      bool eagerly = step && m.row.edge == trace::MarkEdge::instant && text(words, m.row.name) == "optimizer";
      applied_ = applied_ || eagerly || (is_first_call(m) && what(m) != "gradients");
    }
  }
  static bool may_matter(const MarkAt& m) {
    return m.row.kind == trace::MarkKind::step || m.row.kind == trace::MarkKind::batch || m.row.kind == trace::MarkKind::function;
  }
  bool is_step(const MarkAt& m) const {
    if (m.row.kind == trace::MarkKind::step) return true;
    if (m.row.kind == trace::MarkKind::batch) return !any_ || step_kind(words_, m.row) != "train";
    return false;
  }
  bool is_first_call(const MarkAt& m) const {
    return m.row.kind == trace::MarkKind::function && m.row.edge == trace::MarkEdge::end && !detail(m).empty() && counts(m);
  }
  bool counts(const MarkAt& m) const { return !optimizers_ || !by_hand(by(m)); }
  // Another variable is written in the step that was told last.
  bool is_more(const MarkAt& m) const {
    return m.row.kind == trace::MarkKind::function && m.row.edge == trace::MarkEdge::instant && what(m) == "more" && counts(m);
  }
  bool only_gradients(const MarkAt& end) const { return applied_ && what(end) == "gradients"; }
  bool is_again(const MarkAt& begin) const { return what(begin) == "again"; }
  // PyTorch: a step begins with the first allocation after the last one, and that may be what the program does when it has
  // trained.
  bool is_idle_since(std::uint64_t begin) const { return torch_ && begin >= last_work_; }
  bool loops(const MarkAt& end) const { return what(end) == "loop"; }
  std::string_view by(const MarkAt& m) const {
    const std::size_t at = detail(m).find('@');
    const bool tells = m.row.kind == trace::MarkKind::step || m.row.kind == trace::MarkKind::function;
    return tells && at != std::string_view::npos ? detail(m).substr(at + 1) : std::string_view();
  }

 private:
  std::string_view detail(const MarkAt& m) const { return text(words_, m.row.detail); }
  std::string_view what(const MarkAt& m) const { return detail(m).substr(0, detail(m).find('@')); }

  const trace::Dictionaries& words_;
  bool any_ = false, applied_ = false, torch_ = false, optimizers_ = false;
  std::uint64_t last_work_ = 0;  // behind the last training that began, or the last request that failed
};

bool is_tracing(const trace::Dictionaries& words, const trace::Mark& mark) {
  return mark.kind == trace::MarkKind::retrace ||
         (mark.kind == trace::MarkKind::phase && mark.edge == trace::MarkEdge::begin && text(words, mark.name) == "trace");
}

// A step and who applied its gradients; 0 where that is not told.
struct Applied {
  StepRow step;
  std::uint32_t by = 0;
};

// How often one of two follows the other.
std::size_t turns(const std::vector<Applied>& steps, std::uint32_t one, std::uint32_t other) {
  std::size_t out = 0;
  std::uint32_t last = 0;
  for (const Applied& s : steps) {
    if (s.by != one && s.by != other) continue;
    out += last != 0 && s.by != last;
    last = s.by;
  }
  return out;
}

// Optimizers that take turns belong to one iteration: it begins with the one that was first. Those that come after each other (a
// part is trained first, then the whole) do not: their turns are few beside their steps.
std::map<std::uint32_t, std::uint32_t> who_leads(const std::vector<Applied>& steps) {
  std::vector<std::uint32_t> leaders;  // in the order in which they came
  std::map<std::uint32_t, std::uint32_t> out;
  std::map<std::uint32_t, std::size_t> times;
  for (const Applied& s : steps) ++times[s.by];
  for (const Applied& s : steps) {
    if (s.by == 0 || out.contains(s.by)) continue;
    out[s.by] = s.by;
    for (std::uint32_t leader : leaders)
      if (std::size_t n = turns(steps, leader, s.by); n >= 2 && n >= std::min(times[leader], times[s.by])) {
        out[s.by] = leader;
        break;
      }
    if (out[s.by] == s.by) leaders.push_back(s.by);
  }
  return out;
}

// `steps` in the order of their begin.
std::vector<StepRow> join_turns(const std::vector<Applied>& steps) {
  const std::map<std::uint32_t, std::uint32_t> leads = who_leads(steps);
  std::vector<StepRow> out;
  std::map<std::uint32_t, std::size_t> last;  // by leader: its step in `out`
  for (const Applied& s : steps) {
    const std::uint32_t leader = s.by == 0 ? 0 : leads.at(s.by);
    if (leader == s.by) {
      last[leader] = out.size();
      out.push_back(s.step);
      continue;
    }
    StepRow& joined = out[last.at(leader)];
    joined.end = std::max(joined.end, s.step.end);
    joined.end_us = std::max(joined.end_us, s.step.end_us);
    joined.retraced |= s.step.retraced;
    joined.open = s.step.open;
  }
  return out;
}

}  // namespace

StepsFound told_steps(const Tables& tables, const trace::Dictionaries& words, std::uint64_t events, std::uint64_t end_us,
                      NameTable& names) {
  StepsFound out;
  StepMarks step_marks(tables, words);
  std::int64_t epoch = 0;
  std::map<std::uint32_t, std::vector<StepRow>> open;  // by thread
  const MarkAt* last_instant = nullptr;
  std::size_t last_by_hand = kNone32;
  struct InThread {
    std::vector<StepRow> functions;  // that are running
    std::int64_t first_batch = -1;
    std::uint64_t batch_begin = 0;
    std::size_t last = kNone32;        // the step that ended last
    std::optional<StepRow> gradients;  // taken since then, and not yet applied
  };
  std::map<std::uint32_t, InThread> threads;
  // PyTorch: a step begins again behind what ran without gradients since the last one. Where that is seldom it was an evaluation
  // and no part of a step; where it is the rule (a teacher, frozen layers) it is.
  struct Earlier {
    std::uint64_t begin, begin_us;
  };
  std::map<std::uint32_t, Earlier> earlier;    // by thread, of its open step
  std::map<std::size_t, Earlier> begun_again;  // by place in out.steps
  std::vector<std::uint32_t> by;               // whom, for each of out.steps
  auto finish = [&](StepRow step, std::uint64_t pos, std::uint64_t time_us, std::string_view whom = {}) {
    step.end = pos;
    step.end_us = time_us;
    out.steps.push_back(step);
    by.push_back(names.id(whom));
  };
  // A step whose function has ended, or the gradients for one.
  auto finish_function = [&](StepRow step, const MarkAt& m) {
    std::optional<StepRow>& gradients = threads[m.thread].gradients;
    if (step_marks.only_gradients(m)) {
      if (!gradients) gradients = step;
      gradients->retraced |= step.retraced;
      return;
    }
    if (gradients && m.row.kind != trace::MarkKind::batch) {
      step.begin = gradients->begin;
      step.begin_us = gradients->begin_us;
      step.retraced |= gradients->retraced;
      gradients.reset();
    }
    finish(step, m.pos, m.time_us, step_marks.by(m));
    threads[m.thread].last = out.steps.size() - 1;
  };
  // steps_per_execution: a step runs the batches from the number at its begin to the number at its end.
  auto end_batch = [&](const MarkAt& m) {
    const InThread& mine = threads[m.thread];
    if (mine.last >= out.steps.size() || out.steps[mine.last].begin < mine.batch_begin || mine.first_batch < 0 ||
        mine.first_batch > kMostBatches)
      return;
    std::int64_t last_batch = std::clamp(m.row.number, mine.first_batch, mine.first_batch + kMostBatches);
    out.steps[mine.last].batches = static_cast<std::uint32_t>(last_batch - mine.first_batch) + 1;
  };
  for (const MarkAt& m : tables.marks) {
    if (m.row.kind == trace::MarkKind::epoch && m.row.edge != trace::MarkEdge::end) epoch += 1;
    if (m.row.kind == trace::MarkKind::epoch && m.row.edge == trace::MarkEdge::end) open[m.thread].clear();
    if (m.row.kind == trace::MarkKind::batch && m.row.edge == trace::MarkEdge::begin)
      threads[m.thread].first_batch = m.row.number, threads[m.thread].batch_begin = m.pos;
    if (is_tracing(words, m.row))
      for (auto& [thread, steps] : open)
        for (StepRow& step : steps) step.retraced = 1;
    if (!step_marks.may_matter(m)) continue;
    StepRow step;
    step.kind = names.id(step_kind(words, m.row));
    step.epoch = epoch;
    step.begin = m.pos;
    step.begin_us = m.time_us;
    auto& mine = open[m.thread];
    if (step_marks.is_more(m) && last_instant != nullptr && last_by_hand < out.steps.size()) {
      out.steps[last_by_hand].end = m.pos;
      out.steps[last_by_hand].end_us = m.time_us;
      last_instant = &m;
    }
    if (m.row.kind == trace::MarkKind::function) {
      auto& running = threads[m.thread].functions;
      if (m.row.edge == trace::MarkEdge::begin) running.push_back(step);
      if (m.row.edge != trace::MarkEdge::end || running.empty()) continue;
      if (step_marks.is_first_call(m)) {
        running.back().retraced = 1;
        running.back().batches = step_marks.loops(m) ? 0 : 1;
        finish_function(running.back(), m);
      }
      running.pop_back();
    }
    if (!step_marks.is_step(m)) {
      if (m.row.kind == trace::MarkKind::batch && m.row.edge == trace::MarkEdge::end) end_batch(m);
      continue;
    }
    if (m.row.edge == trace::MarkEdge::begin) {
      if (!mine.empty() && step_marks.is_again(m))
        earlier.try_emplace(m.thread, mine.back().begin, mine.back().begin_us);
      else
        earlier.erase(m.thread);
      mine.clear();  // steps do not nest: one that did not end found no more data
      mine.push_back(step);
    } else if (m.row.edge == trace::MarkEdge::end) {
      if (mine.empty()) continue;
      if (!step_marks.counts(m)) {
        mine.pop_back();
        continue;
      }
      if (step_marks.loops(m)) mine.back().batches = 0;
      const std::size_t known = out.steps.size();
      finish_function(mine.back(), m);
      if (auto found = earlier.find(m.thread); found != earlier.end() && out.steps.size() > known)
        begun_again.emplace(out.steps.size() - 1, found->second);
      mine.pop_back();
      if (m.row.kind == trace::MarkKind::batch) end_batch(m);
    } else if (step_marks.counts(m)) {                     // instants: a step lasts until the next one
      bool ends = text(words, m.row.name) == "optimizer";  // told after each step, not before it
      if (last_instant != nullptr || ends) {
        step.begin = last_instant != nullptr ? last_instant->pos : 0;
        step.begin_us = last_instant != nullptr ? last_instant->time_us : 0;
        finish(step, m.pos, m.time_us, step_marks.by(m));
        if (by_hand(step_marks.by(m))) last_by_hand = out.steps.size() - 1;
      }
      last_instant = &m;
      threads[m.thread].gradients.reset();
    }
  }
  if (last_instant != nullptr && text(words, last_instant->row.name) != "optimizer") {
    StepRow step;
    step.kind = names.id(step_kind(words, last_instant->row));
    step.epoch = epoch;
    step.begin = last_instant->pos;
    step.begin_us = last_instant->time_us;
    step.open = kLastOne;
    finish(step, events, end_us);
  }
  // The step in which the recording ended is kept: an OOM often lies in it.
  if (begun_again.size() * 2 > out.steps.size())
    for (auto [i, from] : begun_again) out.steps[i].begin = from.begin, out.steps[i].begin_us = from.begin_us;
  for (auto& [thread, steps] : open)
    for (StepRow& step : steps) {
      if (step_marks.is_idle_since(step.begin)) continue;
      step.open = kCutShort;
      finish(step, events, end_us);
    }
  std::vector<Applied> applied(out.steps.size());
  for (std::size_t i = 0; i < applied.size(); ++i) applied[i] = {out.steps[i], by[i]};
  std::ranges::stable_sort(applied, {}, [](const Applied& a) { return a.step.begin; });
  out.steps = join_turns(applied);
  std::map<std::uint32_t, std::int64_t> count;  // by kind of step
  for (StepRow& step : out.steps) step.number = ++count[step.kind];
  out.source = out.steps.empty() ? 0 : 1;
  return out;
}

}  // namespace vramscope::analyze
