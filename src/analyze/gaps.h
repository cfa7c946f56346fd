// What a trace with unreadable chunks still tells about them.
#pragma once

#include <vector>

#include "analyze/scan.h"

namespace vramscope::analyze {

// Events whose chunk cannot be read: positions [begin, end).
struct Gap {
  std::uint64_t begin = 0, end = 0;
};

// Blocks whose memory was given to another block later, without a free in between, were freed in a gap: their free is put there.
// Otherwise every such block would count as live to the end.
void end_overwritten(const Columns& columns, const std::vector<Kind>& kinds, std::vector<Gap> gaps);

}  // namespace vramscope::analyze
