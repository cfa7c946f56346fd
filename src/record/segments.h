// Which segment of the spool a thread writes to.
#pragma once

#include <cstdint>

#include "record/state.h"

namespace vramscope::record {

// Gives the calling thread a new segment (t_state.segment, cursor) and seals its previous one. False: none is available, which
// is counted as a loss.
bool next_segment(Control& control);

// Segments examined so far in order to find a free one: the work that next_segment does.
std::uint64_t segment_probes();

}  // namespace vramscope::record
