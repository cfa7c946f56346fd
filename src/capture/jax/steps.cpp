#include "capture/jax/steps.h"

#include <atomic>

#include "capture/reported_steps.h"
#include "record/state.h"

namespace vramscope::capture::jax::steps {

namespace {

// By its name: a program that is compiled again for another shape goes on with the steps.
struct Leader {
  std::atomic<std::uint64_t> name;  // string id, and above it the spool in which the id is valid
  std::atomic<std::uint64_t> runs;
};
Leader g_leader;
std::atomic<std::int64_t> g_step;

}  // namespace

void program_runs(Program& program) {
  const std::uint64_t runs = ++program.runs;
  if (!program.trains || steps_are_reported()) return;
  const std::uint64_t name = record::t_state.generation << 32 | program.name;
  if (g_leader.name.load(std::memory_order_relaxed) != name) {
    // Something else has trained as often so far: gradients that were computed once before the loop, or a second network that
    // takes turns with the first.
    if (g_leader.name.load(std::memory_order_relaxed) != 0 && runs <= g_leader.runs.load(std::memory_order_relaxed)) return;
    g_leader.name.store(name, std::memory_order_relaxed);
    g_leader.runs.store(runs - 1, std::memory_order_relaxed);
  }
  g_leader.runs.fetch_add(1, std::memory_order_relaxed);
  record::mark(record::MarkKind::step, 0, "train", g_step.fetch_add(1, std::memory_order_relaxed), nullptr);
}

}  // namespace vramscope::capture::jax::steps
