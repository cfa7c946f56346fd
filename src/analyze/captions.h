// The line below the sentence of an answer: what it is about.
#pragma once

#include <string>

#include "analyze/api.h"

namespace vramscope::analyze {

// "step 20 + 6.318 ms": an instant of a step, to the microsecond.
std::string step_text(const Step& step, std::uint64_t time_us);

std::string caption(const Engine& engine, const Layers& layers);
std::string caption(const Live& live, const Steps& steps);
// "The highest instant of the run"; empty for an instant that is not a peak.
std::string caption_of_peak(const Engine& engine, Moment at);
// "step 3", "steps 3 to 5"; empty outside of steps.
std::string caption_of_range(const Steps& steps, std::uint64_t t0_us, std::uint64_t t1_us);
// Duration and events, steps and epochs, and whether the framework's own counters agree: one text each.
std::vector<std::string> captions(const Overview& overview, const Steps& steps);

std::uint64_t epochs_of(const Steps& steps);

}  // namespace vramscope::analyze
