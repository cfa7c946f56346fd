// What a device has left for a pool, and how far a forecast for it can be off.
#pragma once

#include <string_view>

#include "analyze/whatif/recorded.h"

namespace vramscope::analyze {

// Of the live peak, as shares: of a replay or a forecast from two recordings, at least; of a forecast from the shapes of one; and
// the most that is assumed: what is uncertain is assumed to grow, so more would only be wasted.
inline constexpr double kLeastError = 0.005, kErrorOfShapes = 0.05, kMostError = 0.25;

// An assumption about what was recorded on the host.
inline constexpr std::string_view kContextIsNotCounted =
    "On a GPU, the context and the libraries need memory too: about 0.5 GiB, which is not counted here.";

// Of the live peak: how far it depends on the order in which ops happened to run.
double error_of_order(const Store& store, const RecordedPool& recorded);

// Everything on the device that is not in the pool.
Bytes outside_of(const Engine& engine, const RecordedPool& recorded, int place);

// What the framework leaves to others on a card.
Bytes left_free(const RecordedPool& recorded, Bytes card);

}  // namespace vramscope::analyze
