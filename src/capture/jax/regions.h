// The memory that a pool holds from the driver: found by the blocks that it hands out, because nothing in a plugin that takes
// memory for the pool can be hooked, and it may have been taken when the pool was created.
#pragma once

#include <cstdint>

namespace vramscope::capture::jax::regions {

// The pool has handed out this block: records the region around it if that is new. A few compares in the common case.
void note_block(std::uint8_t pool, std::uint64_t address);
// The pool is gone, and has returned all of its regions.
void return_all(std::uint8_t pool);

}  // namespace vramscope::capture::jax::regions
