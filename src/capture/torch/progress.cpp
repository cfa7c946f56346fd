#include "capture/torch/progress.h"

#include <atomic>

#include "record/recorder.h"
#include "vramscope/labels.h"

namespace vramscope::capture::torch {

namespace {

using stacks::Phase;

std::atomic<std::uint8_t> g_phase{0};
// The thread that runs the training loop: the first that computes forward. Loader threads do not change the phase of the process.
std::atomic<const void*> g_loop_thread{nullptr};
constinit thread_local char t_me;

enum StepState : int { kNoSteps = 0, kBetween, kInside };  // kNoSteps: nobody told us about steps
std::atomic<int> g_step_state{kNoSteps};
std::atomic<std::int64_t> g_step{0};

void enter(Phase phase) {
  const auto next = static_cast<std::uint8_t>(phase);
  if (__builtin_expect(g_phase.load(std::memory_order_relaxed) == next, 1)) return;
  const std::uint8_t before = g_phase.exchange(next, std::memory_order_relaxed);
  if (before == next) return;
  if (before != 0)
    record::mark(record::MarkKind::phase, spool::kFlagEnd, stacks::phase_name(static_cast<Phase>(before)), -1, nullptr);
  record::mark(record::MarkKind::phase, spool::kFlagBegin, stacks::phase_name(phase), -1, nullptr);
}

void begin_step() {
  int between = kBetween;
  if (!g_step_state.compare_exchange_strong(between, kInside, std::memory_order_relaxed)) return;
  record::mark(record::MarkKind::step, spool::kFlagBegin, "train", g_step.load(std::memory_order_relaxed) + 1, nullptr);
}

}  // namespace

Progress follow(const stacks::Snapshot& stack, bool inside_backward) {
  if (inside_backward) {
    enter(Phase::backward);
    return {Phase::backward};
  }
  const void* loop = g_loop_thread.load(std::memory_order_relaxed);
  if (loop == nullptr && stack.phase == Phase::forward && g_loop_thread.compare_exchange_strong(loop, &t_me)) loop = &t_me;
  if (loop != &t_me) return {stack.phase};
  Phase phase = stack.phase;
  const bool between = g_step_state.load(std::memory_order_relaxed) == kBetween;
  const bool after_forward = !between && g_phase.load(std::memory_order_relaxed) == static_cast<std::uint8_t>(Phase::forward);
  const bool loop_computes = phase == Phase::none && after_forward;
  if (phase == Phase::none && between) phase = Phase::input;  // the loop fetches the next batch
  if (loop_computes) phase = Phase::forward;
  if (between && (phase == Phase::input || phase == Phase::forward)) begin_step();
  if (phase != Phase::none) enter(phase);
  return {phase, loop_computes};
}

}  // namespace vramscope::capture::torch

using namespace vramscope;
using namespace vramscope::capture::torch;

extern "C" __attribute__((visibility("default"))) void vramscope_step_done(int64_t number) {
  const int next = number < 0 ? kNoSteps : kBetween;
  if (g_step_state.exchange(next, std::memory_order_relaxed) == kInside)
    record::mark(record::MarkKind::step, spool::kFlagEnd, "train", g_step.load(std::memory_order_relaxed) + 1, nullptr);
  if (number >= 0) g_step.store(number, std::memory_order_relaxed);
}
