// Which recorded pool an allocator object is.
#pragma once

#include <cstdint>

#include "capture/tensorflow/library.h"

namespace vramscope::capture::tensorflow {

// Index of the allocator's pool, made at first sight (asks the allocator for its name and limit: never call it inside the lock).
std::uint8_t pool_of(const Library& real, void* allocator);
// The allocator is being destroyed: its address may be reused by another.
void forget(void* allocator);

// Whether this version tells the size of a freed block inside the lock. Assumed not, until it was seen.
bool frees_tell_sizes();
void learn_frees_tell_sizes();

// Records every living allocator's own counters. Returns how many answered.
int record_stats(const Library& real);

}  // namespace vramscope::capture::tensorflow
