// The spool file of this process: made at the first event, grown by extents, handed out in segments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/state.h"

namespace vramscope::record {

enum class Setup { recording, off };

// Makes the spool of this process, or finds it made. Safe from several threads and in a forked child.
Setup set_up();
// Nothing will be recorded in this process from now on.
void turn_off();
void turn_on();
// Ends a recording that a late attach began: the collector sees the process as finished. Recording can begin again.
void end_recording();
bool is_off();

// Gives the calling thread a fresh segment (t_state.segment, cursor), sealing the one it had. False: there is none to be had,
// counted as lost.
bool next_segment(Control& control);

std::uint64_t ticks(const Control& control);

}  // namespace vramscope::record
