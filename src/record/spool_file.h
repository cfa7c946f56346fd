// The spool file of this process: created, mapped and grown by extents.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/state.h"

namespace vramscope::record {

// Creates the files of this process and maps the header and the first extent. False: errno says why; nothing is left behind. Only
// under the lock of set_up().
bool make_spool(Control& control);
// The sentence for that errno.
const char* why_no_spool(int reason);
// Gives up the lock on the process's files: the collector sees the process as finished.
void release_lock_file();

enum class Growth { grown, busy, refused };
// Adds an extent of free segments. busy: another thread is doing so.
Growth grow(Control& control);

inline spool::SegmentHeader* segment_at(const Control& control, std::uint32_t index) {
  return reinterpret_cast<spool::SegmentHeader*>(control.segments + static_cast<std::size_t>(index) * spool::kSegmentBytes);
}

}  // namespace vramscope::record
