#include "analyze/attribute/scopes.h"

#include <algorithm>
#include <map>

#include "analyze/attribute/op_names.h"

namespace vramscope::analyze {

Scopes::Scopes(const Store& draft, NameTable& names) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> layers;  // by thread
  std::map<std::uint32_t, int> tapes;
  std::map<std::uint32_t, bool> after_layers;  // a tape is recording, and layers have been called
  std::vector<Stage> phases;
  const std::uint32_t loss = names.id(kLossGroup);
  for (const auto& m : draft.marks) {
    python_.insert(m.thread);
    bool begin = m.row.edge == trace::MarkEdge::begin, end = m.row.edge == trace::MarkEdge::end;
    if (m.row.kind == trace::MarkKind::phase) {
      Stage stage = stage_from(draft.text(m.row.name));
      if (begin) phases.push_back(stage);
      if (end && !phases.empty()) phases.pop_back();
      if (begin || end) process_.push_back({m.pos, 0, phases.empty() ? Stage::other : phases.back()});
      if (begin && stage == Stage::backward) after_layers[m.thread] = false;
    } else if (m.row.kind == trace::MarkKind::layer || m.row.kind == trace::MarkKind::tape) {
      auto& stack = layers[m.thread];
      int& tape = tapes[m.thread];
      if (m.row.kind == trace::MarkKind::tape) {
        tape += begin ? 1 : end && tape > 0 ? -1 : 0;
        if (begin) after_layers[m.thread] = false;
      } else if (begin) {
        stack.push_back(names.id(draft.text(m.row.name)));
      } else if (end && !stack.empty()) {
        stack.pop_back();
        after_layers[m.thread] = true;
      }
      const std::uint32_t outside = tape > 0 && after_layers[m.thread] ? loss : 0;
      thread_[m.thread].push_back({m.pos, stack.empty() ? outside : stack.back(), tape > 0 ? Stage::forward : Stage::other});
    }
  }
}

const Timeline* Scopes::of_thread(std::uint32_t thread) const {
  auto it = thread_.find(thread);
  return it == thread_.end() ? nullptr : &it->second;
}

const Scope* Scopes::process_after(std::uint64_t pos) const {
  auto it = std::upper_bound(process_.begin(), process_.end(), pos, [](std::uint64_t p, const Scope& s) { return p < s.pos; });
  return it == process_.end() ? nullptr : &*it;
}

std::vector<std::uint64_t> Scopes::backward_passes() const {
  std::vector<std::uint64_t> out;
  for (const Scope& scope : process_)
    if (scope.stage == Stage::backward) out.push_back(scope.pos);
  return out;
}

std::uint64_t Scopes::backward_end(std::uint64_t pos) const {
  auto it = std::upper_bound(process_.begin(), process_.end(), pos, [](std::uint64_t p, const Scope& s) { return p < s.pos; });
  if (it == process_.begin() || (it - 1)->stage != Stage::backward) return kNever;
  while (it != process_.end() && it->stage == Stage::backward) ++it;
  return it == process_.end() ? kNever : it->pos;
}

Scope scope_at(const Timeline& timeline, std::uint64_t pos) {
  auto it = std::upper_bound(timeline.begin(), timeline.end(), pos, [](std::uint64_t p, const Scope& s) { return p < s.pos; });
  return it == timeline.begin() ? Scope{} : *--it;
}

}  // namespace vramscope::analyze
