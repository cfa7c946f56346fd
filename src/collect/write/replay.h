// Takes over what another collector stored before it died.
#pragma once

#include "collect/order/seq_ranges.h"
#include "collect/write/process_trace.h"
#include "trace/reader.h"

namespace vramscope::collect {

// Writes every event of `partial` again. Returns the numbers of these events.
SeqRanges replay(const trace::Reader& partial, ProcessTrace& into);

}  // namespace vramscope::collect
