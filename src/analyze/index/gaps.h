// What the rest of a trace reveals about its unreadable chunks.
#pragma once

#include <vector>

#include "analyze/index/scan.h"

namespace vramscope::analyze {

// Events whose chunk cannot be read: positions [begin, end).
struct Gap {
  std::uint64_t begin = 0, end = 0;
};

// A block whose memory was given to another block later, without a free in between, was freed in a gap: its free is placed there.
// Otherwise it would count as live until the end.
void end_overwritten(const Columns& columns, const std::vector<Kind>& kinds, std::vector<Gap> gaps);

}  // namespace vramscope::analyze
