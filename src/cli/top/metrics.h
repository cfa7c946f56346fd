// What `top` shows, as metrics for Prometheus and for everything else that reads its formats.
#pragma once

#include <string>

#include "cli/top/model.h"

namespace vramscope::cli::top {

enum class MetricsFormat : std::uint8_t { prometheus, open_metrics };  // text 0.0.4; OpenMetrics 1.0

std::string metrics_text(const State& state, MetricsFormat format);
// For the Content-Type of an answer.
const char* content_type(MetricsFormat format);

}  // namespace vramscope::cli::top
