#pragma once

#include "trace/gen/schema.h"

namespace vramscope::analyze {

// Events that are missing from the trace. Late events are present but out of order; if names are missing, the events are
// present.
inline bool are_missing(trace::LossKind kind) { return kind != trace::LossKind::late && kind != trace::LossKind::names; }

}  // namespace vramscope::analyze
