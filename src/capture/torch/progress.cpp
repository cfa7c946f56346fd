#include "capture/torch/progress.h"

#include <atomic>

#include "record/recorder.h"
#include "vramscope/labels.h"

namespace vramscope::capture::torch {

namespace {

using stacks::Phase;

std::atomic<std::uint8_t> g_phase{0};
// The thread of the training loop: the first one that runs a forward pass. Loader threads do not change the phase of the process.
std::atomic<const void*> g_loop_thread{nullptr};
constinit thread_local char t_me;

// kNoSteps: no step was reported. The next three: since the last step there was no training yet, but nothing at all, a batch was
// fetched, or a model ran without gradients.
enum StepState : int { kNoSteps = 0, kBetween, kFetched, kEvaluated, kTraining };
std::atomic<int> g_step_state{kNoSteps};
std::atomic<std::int64_t> g_step{0};

void enter(Phase phase) {
  const auto next = static_cast<std::uint8_t>(phase);
  if (__builtin_expect(g_phase.load(std::memory_order_relaxed) == next, 1)) return;
  const std::uint8_t before = g_phase.exchange(next, std::memory_order_relaxed);
  if (before == next) return;
  if (before != 0)
    record::mark(record::MarkKind::phase, spool::kFlagEnd, stacks::phase_name(static_cast<Phase>(before)), -1, nullptr);
  if (phase != Phase::none) record::mark(record::MarkKind::phase, spool::kFlagBegin, stacks::phase_name(phase), -1, nullptr);
}

// Between two training steps, a model may run without gradients: as an evaluation, or as a part of each step (a teacher, frozen
// layers). Only the number of such runs shows which. So a step starts with the first allocation, and a second mark ("again")
// follows what may have been an evaluation.
void change_state(int state, int next) {
  if (state == next || !g_step_state.compare_exchange_strong(state, next, std::memory_order_relaxed)) return;
  const bool again = state == kEvaluated;
  if (state == kBetween || again)
    record::mark(record::MarkKind::step, spool::kFlagBegin, "train", g_step.load(std::memory_order_relaxed) + 1,
                 again ? "again" : nullptr);
}

Phase before_training(const Library& real, Phase phase, int state) {
  if (phase == Phase::serving) {  // never has gradients, whatever the layer does
    if (state == kBetween) change_state(state, kFetched);
    return state == kEvaluated ? Phase::evaluate : Phase::forward;
  }
  const bool no_gradients = real.gradients_wanted != nullptr && !real.gradients_wanted();
  if (no_gradients && (phase == Phase::forward || (phase == Phase::none && state == kEvaluated))) {
    change_state(state, kEvaluated);
    return Phase::evaluate;
  }
  if (phase == Phase::none && state != kFetched) phase = Phase::input;  // the loop fetches the next batch
  if (phase == Phase::input) change_state(state, kFetched);
  if (phase == Phase::forward || phase == Phase::checkpointed) change_state(state, kTraining);
  return phase;
}

}  // namespace

Progress follow(const Library& real, const stacks::Snapshot& stack, bool inside_backward) {
  if (inside_backward) {
    enter(Phase::backward);
    if (int fetched = kFetched; g_step_state.load(std::memory_order_relaxed) == fetched)
      g_step_state.compare_exchange_strong(fetched, kTraining, std::memory_order_relaxed);
    return {Phase::backward};
  }
  const void* loop = g_loop_thread.load(std::memory_order_relaxed);
  const bool computes = stack.phase == Phase::forward || stack.phase == Phase::checkpointed;
  if (loop == nullptr && computes && g_loop_thread.compare_exchange_strong(loop, &t_me)) loop = &t_me;
  if (loop != &t_me) return {stack.phase};
  Phase phase = stack.phase;
  const int state = g_step_state.load(std::memory_order_relaxed);
  const bool training = state == kTraining || state == kNoSteps;
  const bool loop_computes =
      phase == Phase::none && training && g_phase.load(std::memory_order_relaxed) == static_cast<std::uint8_t>(Phase::forward);
  if (loop_computes) phase = Phase::forward;
  if (!training) phase = before_training(real, phase, state);
  if (phase == Phase::checkpointed || phase == Phase::serving) phase = Phase::forward;
  // If the loop itself allocates after a backward pass (a manual update, a norm of gradients), the pass is over.
  if (phase != Phase::none || g_phase.load(std::memory_order_relaxed) == static_cast<std::uint8_t>(Phase::backward)) enter(phase);
  return {phase, loop_computes};
}

}  // namespace vramscope::capture::torch

using namespace vramscope;
using namespace vramscope::capture::torch;

extern "C" __attribute__((visibility("default"))) void vramscope_step_done(int64_t number) {
  const int next = number < 0 ? kNoSteps : kBetween;
  const int before = g_step_state.exchange(next, std::memory_order_relaxed);
  if (before != kNoSteps && before != kBetween)
    record::mark(record::MarkKind::step, spool::kFlagEnd, "train", g_step.load(std::memory_order_relaxed) + 1, nullptr);
  if (number >= 0) g_step.store(number, std::memory_order_relaxed);
}
