// Why the peak of a run lies above that of its steady steps, and when it was: one rule for every sentence that says so.
#pragma once

#include <optional>
#include <string>

#include "analyze/query/state.h"

namespace vramscope::analyze {

struct PeakRise {
  // failed: in a step that ran out of memory or was cut off, which says nothing about the others; later: no warm-up, but a leak
  // that went on, or what the program does after training; chance: ops run side by side, which makes each step a little
  // different.
  enum class Cause { evaluation, failed, autotuning, start, later, chance };
  Cause cause = Cause::start;
  Bytes above = 0;    // the peak of the steady steps; of an evaluation: that of everything else
  Bytes scratch = 0;  // autotuning workspace at the peak
  std::string when;   // "in step 1", "before the first step", "in an evaluation", "at 6.2 s"
};

// None: there are no steady steps, or their peak is the run's, within 2 %.
std::optional<PeakRise> peak_rise(const Engine::State& state, const Place& place);

// Of what is live at the peak and not in the steady steps: the op or line with the most bytes, as a sentence.
std::string only_at_peak(const Store& store, const PoolSet& pools, const Place& place);

// "the 512.0 MiB peak was autotuning in step 1"
std::string in_words(const PeakRise& rise, const Place& place);

}  // namespace vramscope::analyze
