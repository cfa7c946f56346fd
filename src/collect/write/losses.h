// The one list of what can be missing from a trace, as text for the user and with what to do about it.
#pragma once

#include <cstdint>
#include <string>

#include "trace/gen/schema.h"

namespace vramscope::collect {

// "12 events: the spool limit was reached; give more with --spool-limit"
std::string describe_loss(trace::LossKind kind, std::uint64_t count);

// Late events are complete but out of order: worth knowing, but not a loss.
inline bool is_loss(trace::LossKind kind) { return kind != trace::LossKind::late; }

}  // namespace vramscope::collect
