// Wraps the table of functions that a plugin gives to JAX: executions, compilations, transfers.
#pragma once

namespace vramscope::capture::jax::pjrt {

// What JAX gets instead of the plugin's function GetPjrtApi: one that returns a copy of the table with our functions in it. The
// function itself if there are too many plugins. If the plugin's allocator is not recorded, its buffers are (buffers.h).
void* wrapped_entry(void* entry, bool allocator_is_recorded);

}  // namespace vramscope::capture::jax::pjrt
