#pragma once

#include "trace/gen/schema.h"

namespace vramscope::analyze {

// Events that are in no trace. Late ones are there, only not in their place; where names are missing, the events are there.
inline bool are_missing(trace::LossKind kind) { return kind != trace::LossKind::late && kind != trace::LossKind::names; }

}  // namespace vramscope::analyze
