// What a device has left for a pool, and how far a forecast for it can be off.
#pragma once

#include "analyze/whatif/recorded.h"

namespace vramscope::analyze {

// Of the live peak: how far it depends on the order in which ops happened to run.
double error_of_order(const Store& store, const RecordedPool& recorded);

// Everything on the device that is not in the pool.
Bytes outside_of(const Engine& engine, const RecordedPool& recorded, int place);

// What the framework leaves to others on a card.
Bytes left_free(const RecordedPool& recorded, Bytes card);

}  // namespace vramscope::analyze
