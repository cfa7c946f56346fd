// Which memory one of TensorFlow's allocators hands out, by its name.
#pragma once

#include <string_view>

#include "importers/profile.h"

namespace vramscope::importers {

// "GPU_0_bfc" is memory of device 0, "gpu_host_bfc" is pinned, anything else is host memory.
PoolInfo tensorflow_pool(std::string_view allocator);

}  // namespace vramscope::importers
