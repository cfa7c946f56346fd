// An instant as text that a person can read and that stays true if the program is recorded again: time within its step.
#pragma once

#include <string>

#include "analyze/api.h"

namespace vramscope::analyze {

// "step:20+6.318ms", or "6.244485s" outside of the steps that a number alone means. resolve() turns it into the same moment:
// where several events share a microsecond, "#2" after it is the state after the second of them.
std::string instant_text(const Engine& engine, Moment at);

// "0.004300": seconds since the start of the trace, to the microsecond.
std::string seconds_text(std::uint64_t time_us);

// The step in which that time is; NULL if there is none.
const Step* step_at(const Steps& steps, std::uint64_t time_us);

}  // namespace vramscope::analyze
