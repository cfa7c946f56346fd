// The allocator of a PyTorch recording, for replays.
#pragma once

#include "analyze/framework.h"

namespace vramscope::analyze::pytorch {

// With the settings of the recorded process. An error if they cannot be read.
Status set_replay(const Store& store, Bytes limit, RecordedPool& pool);

}  // namespace vramscope::analyze::pytorch
