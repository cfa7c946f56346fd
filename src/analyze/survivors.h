// Blocks that outlive their step and never come back, by where they were made: the strongest evidence of a leak.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/answers.h"
#include "analyze/grouper.h"
#include "analyze/store.h"

namespace vramscope::analyze {

// The steps that are looked at, in order: training steps without warm-up.
struct StepWindow {
  std::vector<std::size_t> steps;  // indices into store.steps
  std::size_t of(const Store& store,
                 std::uint64_t pos) const;  // window index of the step (or gap after it) that holds the event; size() = none
};

// Blocks of one origin (op, layer, line, stack) that were born in the window and were still live when the following step ended.
struct Origin {
  std::uint64_t key = 0;      // origin_key() of its blocks
  std::uint64_t example = 0;  // its first block that is still live then, or its first block
  std::vector<double> kept;   // by window step: bytes born in it that are live when the last one ends
  std::uint64_t kept_blocks = 0, freed_blocks = 0;
  Bytes kept_bytes = 0, largest = 0;
  bool replaced = false;              // see replaced.h
  std::size_t longest_freed = 0;      // highest age, in steps, of a block that came back
  std::vector<double> level;          // by window step: live bytes of this origin after it
  std::vector<std::uint64_t> oldest;  // up to five still live, oldest first
};

// The same for all blocks that one place of the program made, whatever their size.
std::uint64_t origin_key(const Store& store, std::uint64_t alloc);

// By window step: where the next one begins. What lives when the last one ends counts as kept: at exit a program frees all.
std::vector<std::uint64_t> step_ends(const Store& store, const StepWindow& window);

std::vector<Origin> survivors(const Store& store, const Grouper& grouper, const StepWindow& window);

}  // namespace vramscope::analyze
