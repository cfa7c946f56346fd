// Maps allocator objects to recorded pools.
#pragma once

#include <cstdint>

#include "capture/tensorflow/library.h"

namespace vramscope::capture::tensorflow {

// Index of the allocator's pool, which is created on first use. Creating it asks the allocator for its name and limit: never call
// this inside the allocator's lock.
std::uint8_t pool_of(const Library& real, void* allocator);
// The allocator is being destroyed, and another one may get its address.
void forget(void* allocator);

// Whether this version of TensorFlow reports the size of a freed block inside the lock. False until the first such report.
bool frees_report_sizes();
void learn_that_frees_report_sizes();

// Records the counters of every existing allocator. Returns how many have any; 0 if TensorFlow is not loaded.
int record_counters();

}  // namespace vramscope::capture::tensorflow
