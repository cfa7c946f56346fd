// Blocks that outlive their step and are never freed, by origin: the strongest evidence of a leak.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/answers.h"
#include "analyze/index/store.h"
#include "analyze/query/grouper.h"
#include "analyze/query/state.h"

namespace vramscope::analyze {

// The examined steps, in order: training steps without warm-up.
struct StepWindow {
  std::vector<std::size_t> steps;  // indices into store.steps
  std::size_t of(const Store& store,
                 std::uint64_t pos) const;  // window index of the step (or gap after it) that holds the event; size() = none
};

// The steady steps that ended. A step that ran out of memory or lasts until the program's exit did not: what it freed on the way
// out says nothing.
StepWindow examined_steps(const Engine::State& state);

// Blocks of one origin (op, layer, line, stack) that were born in the window and were still live when the following step ended.
struct Origin {
  static constexpr std::size_t kExamples = 5;
  std::uint64_t key = 0;      // origin_key() of its blocks
  std::uint64_t example = 0;  // its first block that is still live then, or its first block
  std::vector<double>
      kept;  // by window step: bytes born in it that are live when the last one ends, less what older blocks gave back
  std::uint64_t kept_blocks = 0, freed_blocks = 0;
  Bytes kept_bytes = 0, largest = 0;
  bool replaced = false;              // see replaced.h
  std::size_t longest_freed = 0;      // highest age, in steps, of a block that was freed
  std::vector<double> level;          // by window step: live bytes of this origin after it
  std::vector<std::uint64_t> oldest;  // up to kExamples still live, oldest first
};

// The same for all blocks that one place of the program allocated, whatever their size.
std::uint64_t origin_key(const Store& store, std::uint64_t alloc);

// By window step: where the next one starts. What is live when the last one ends counts as kept, because a program frees
// everything at exit.
std::vector<std::uint64_t> step_ends(const Store& store, const StepWindow& window);

std::vector<Origin> survivors(const Store& store, const Grouper& grouper, const StepWindow& window);

}  // namespace vramscope::analyze
