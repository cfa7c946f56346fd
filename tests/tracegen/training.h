// A training program whose memory behavior is chosen: what it keeps, what it varies, when it fails.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "maker.h"

namespace vramscope::tracegen {

struct Training {
  std::uint64_t seed = 1;
  std::int64_t steps = 48;
  int layers = 4;
  int devices = 1;
  std::uint64_t layer_bytes = 1u << 20;     // activations of one layer
  std::uint64_t weight_bytes = 256u << 10;  // parameters of one layer
  int small_blocks = 4;                     // short-lived blocks for each layer and pass
  bool marks = true;                        // false: steps have to be found
  bool instants = false;                    // marks only where a step begins, as vramscope.step() does
  bool tags = true;
  bool eager = false;    // op names without a path
  bool trains = true;    // false: only the forward pass
  bool in_loop = false;  // several steps are one call (steps_per_execution); its graph's constants are folded three times
  std::int64_t update_every = 1;   // the optimizer runs after so many steps (gradient accumulation)
  bool eager_update = false;       // outside of the training function
  bool nested = false;             // layers have paths: encoder/layer_7/query
  std::vector<std::string> names;  // of layers and source files, instead of dense_0 and train.py

  std::uint64_t autotune_bytes = 0;  // scratch in step 1
  std::uint64_t xla_bytes = 0;       // temporaries of an executable in each layer
  std::int64_t rank = -1;            // in a distributed run; -1: none
  std::int64_t warmup_steps = 1;     // steps in which caches are filled
  std::uint64_t cache_bytes = 0;     // kept by each warm-up step

  std::uint64_t leak_bytes = 0;                // kept by each leaking step, in one block
  std::int64_t leak_every = 1, leak_from = 2;  // steps
  double leak_chance = 1;                      // of each such step
  double leak_spread = 0, leak_memory = 0;     // the leaked block's size varies: relative deviation, correlation of neighbors
  std::uint64_t growing_block = 0;             // one block is replaced in each step by one that is so much larger
  double noise = 0;                    // autocorrelated wandering of what is left after a step, in bytes (standard deviation)
  double noise_memory = 0.9;           // of the AR(1) process
  bool variable_shapes = false;        // layer_bytes varies from step to step
  std::uint64_t saturating_bytes = 0;  // a cache that fills towards this sum ...
  double saturating_steps = 0;         // ... with this time constant
  std::int64_t evaluate_every = 0;     // evaluation after so many steps

  Maker::Options maker;
  bool killed = false;      // the trace has no end
  std::int64_t signal = 0;  // that ended it
  std::uint64_t card = 0;   // bytes of the card, of which a sample is written; 0: none
  bool teardown = false;    // all that is live is freed at exit
};

// What a generated run really did.
struct Truth {
  std::uint64_t peak = 0, steady_peak = 0, end = 0, allocs = 0, events = 0;
  std::vector<std::uint64_t> step_peak, left_after;
  std::uint64_t leaks = 0;  // steps that leaked
  bool out_of_memory = false;
};

Result<Truth> write_training(const std::filesystem::path& path, const Training& program);

}  // namespace vramscope::tracegen
