// The metrics of `top` as a request of OpenTelemetry's protocol (OTLP), in its JSON encoding.
#pragma once

#include <cstdint>
#include <string>

#include "cli/top/model.h"

namespace vramscope::cli::top {

// Times are nanoseconds since 1970; counters began at `start_ns`.
std::string otlp_request(const State& state, std::uint64_t start_ns, std::uint64_t now_ns);

}  // namespace vramscope::cli::top
