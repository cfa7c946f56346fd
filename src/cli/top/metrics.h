// What `top` shows, as metrics for Prometheus and for everything else that reads its formats.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/top/model.h"

namespace vramscope::cli::top {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

struct MetricSample {
  Labels labels;
  double value = 0;
};

struct MetricFamily {
  std::string_view name, unit, help;
  bool counts = false;  // only ever grows
  std::vector<MetricSample> samples;
};

std::vector<MetricFamily> metric_families(const State& state);

enum class MetricsFormat : std::uint8_t { prometheus, open_metrics };  // text 0.0.4; OpenMetrics 1.0

std::string metrics_text(const State& state, MetricsFormat format);
// For the Content-Type of an answer.
const char* content_type(MetricsFormat format);

}  // namespace vramscope::cli::top
