// Wraps the table of functions that a plugin gives to JAX: executions, compilations, transfers.
#pragma once

namespace vramscope::capture::jax::pjrt {

// What JAX gets instead of the plugin's function GetPjrtApi: one that returns a copy of the table with our functions in it. The
// function itself if there are too many plugins.
void* wrapped_entry(void* entry);

}  // namespace vramscope::capture::jax::pjrt
