// Memory in each step, and which steps form the steady state.
#pragma once

#include <span>
#include <vector>

#include "analyze/index/pyramid.h"
#include "analyze/index/store.h"
#include "analyze/query/grouper.h"

namespace vramscope::analyze {

// Numbers of one step in one place; stored in the index for the main one.
struct StepMeasure {
  Bytes peak = 0, before = 0, after = 0, allocated = 0, freed = 0;
  Moment peak_at = 0;
  std::uint64_t allocs = 0, frees = 0;
  Bytes forward_peak = 0, backward_peak = 0, optimizer_peak = 0, before_optimizer = 0, after_optimizer = 0;
};

std::vector<StepMeasure> measure_steps(const Store& store, const Grouper& grouper, const Pyramid& pyramid, unsigned threads);

struct Stretch {
  Moment from = 0, to = 0;
};

// Training steps from `first` to `last` (indices into store.steps) behave alike; warm-up came before. `has` is false with fewer
// than two training steps.
struct Steady {
  bool has = false;
  std::size_t first = 0, last = 0;
  Moment from = 0, to = 0;
  std::vector<Stretch> training;  // from..to without the evaluations between the steps
};
Steady steady_state(const Store& store, std::span<const StepMeasure> measures);

// Whether a request failed in the step, and the program saw it.
bool ran_out_of_memory(const Store& store, const StepRow& step);

// Whether the program evaluated a model at that time.
bool in_evaluation(const Store& store, Moment at);

}  // namespace vramscope::analyze
