// What a place would need if some of its blocks were smaller or absent: the trace, walked again with other sizes.
#pragma once

#include <functional>
#include <optional>

#include "analyze/query/state.h"

namespace vramscope::analyze {

// The longest trace that is walked again for one figure: a few tens of milliseconds.
inline constexpr Moment kMostEventsOfWalk = 4'000'000;

// What is left of a block of so many bytes.
using KeptBytes = std::function<Bytes(std::uint64_t alloc, Bytes granted)>;

// How much lower the peak of the steady steps would be, or that of the run if it has none. Nothing if the trace has more
// events than kMostEventsOfWalk.
std::optional<Bytes> saving_if(const Engine::State& state, const Place& place, const KeptBytes& kept);

}  // namespace vramscope::analyze
