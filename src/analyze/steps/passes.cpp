// Steps of a program that reports none, from its backward passes: PyTorch without one of its own optimizers.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/steps/marks.h"
#include "analyze/steps/step_marks.h"

namespace vramscope::analyze {
namespace {

constexpr std::size_t kFewestPasses = 3;  // fewer do not show that they repeat

bool starts_step(std::string_view phase) { return phase == "forward" || phase == "input"; }

bool marks_forward_passes(const Tables& tables, const trace::Dictionaries& dictionaries) {
  return std::ranges::any_of(tables.marks, [&](const MarkAt& m) {
    return m.row.kind == trace::MarkKind::phase && starts_step(text_of(dictionaries, m.row.name));
  });
}

}  // namespace

// A step ends where the input or the forward pass of the next one starts: what is done with the gradients belongs to it. Code
// without modules marks no forward pass: there, a step ends with its backward pass.
StepsFound steps_of_passes(const Tables& tables, const trace::Dictionaries& dictionaries, std::uint64_t events,
                           std::uint64_t end_us, NameTable& names) {
  StepsFound out;
  std::optional<StepRow> open;
  bool differentiated = false;
  const bool only_backward = !marks_forward_passes(tables, dictionaries);
  const auto begin_at = [&](std::uint64_t pos, std::uint64_t time_us) {
    open = StepRow{.begin = pos, .begin_us = time_us, .kind = names.id("train")};
    differentiated = false;
  };
  if (only_backward) begin_at(0, 0);
  auto finish = [&](std::uint64_t pos, std::uint64_t time_us) {
    if (!open || !differentiated) return;
    open->end = pos;
    open->end_us = time_us;
    open->number = static_cast<std::int64_t>(out.steps.size()) + 1;
    out.steps.push_back(*open);
  };
  for (const MarkAt& m : tables.marks) {
    if (m.row.kind != trace::MarkKind::phase) continue;
    const std::string_view phase = text_of(dictionaries, m.row.name);
    const bool begins = m.row.edge == trace::MarkEdge::begin;
    if (phase == "backward" && begins) differentiated = open.has_value();
    const bool next = only_backward ? phase == "backward" && !begins && differentiated
                                    : starts_step(phase) && begins && (!open || differentiated);
    if (!next) continue;
    finish(m.pos, m.time_us);
    begin_at(m.pos, m.time_us);
  }
  if (open) open->open = kLastOne;
  finish(events, end_us);
  if (out.steps.size() < kFewestPasses) return {};
  out.source = StepSource::inferred;
  return out;
}

}  // namespace vramscope::analyze
