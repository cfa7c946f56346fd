// What can be missing from a trace, in the reader's words and with what to do about it. One list.
#pragma once

#include <cstdint>
#include <string>

#include "trace/gen/schema.h"

namespace vramscope::collect {

// "12 events: the spool limit was reached; give more with --spool-limit"
std::string describe_loss(trace::LossKind kind, std::uint64_t count);

// Late events are all there, only not in their place: worth knowing, no loss.
inline bool is_loss(trace::LossKind kind) { return kind != trace::LossKind::late; }

}  // namespace vramscope::collect
