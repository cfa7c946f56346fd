#include "cli/top/otlp.h"

#include <unistd.h>

#include "cli/top/metrics.h"
#include "support/json_writer.h"

namespace vramscope::cli::top {

namespace {

using support::JsonWriter;

constexpr int kCumulative = 2;  // AGGREGATION_TEMPORALITY_CUMULATIVE

void attribute(JsonWriter& json, std::string_view name, std::string_view value) {
  json.begin_object().member("key", name).key("value").begin_object().member("stringValue", value).end_object().end_object();
}

// 64-bit integers are strings in this encoding.
void points(JsonWriter& json, const MetricFamily& metric, std::uint64_t start_ns, std::uint64_t now_ns) {
  json.key("dataPoints").begin_array();
  for (const MetricSample& sample : metric.samples) {
    json.begin_object().key("attributes").begin_array();
    for (const auto& [name, value] : sample.labels) attribute(json, name, value);
    json.end_array();
    if (metric.counts) json.member("startTimeUnixNano", std::to_string(start_ns));
    json.member("timeUnixNano", std::to_string(now_ns)).member("asDouble", sample.value).end_object();
  }
  json.end_array();
}

void metric(JsonWriter& json, const MetricFamily& metric, std::uint64_t start_ns, std::uint64_t now_ns) {
  json.begin_object().member("name", metric.name).member("description", metric.help);
  if (metric.unit == "bytes") json.member("unit", "By");
  json.key(metric.counts ? "sum" : "gauge").begin_object();
  points(json, metric, start_ns, now_ns);
  if (metric.counts) json.member("aggregationTemporality", kCumulative).member("isMonotonic", true);
  json.end_object().end_object();
}

}  // namespace

std::string otlp_request(const State& state, std::uint64_t start_ns, std::uint64_t now_ns) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  JsonWriter json(false);
  json.begin_object().key("resourceMetrics").begin_array().begin_object();
  json.key("resource").begin_object().key("attributes").begin_array();
  attribute(json, "service.name", "vramscope");
  attribute(json, "host.name", host);
  json.end_array().end_object();
  json.key("scopeMetrics").begin_array().begin_object();
  json.key("scope").begin_object().member("name", "vramscope").member("version", VRAMSCOPE_VERSION).end_object();
  json.key("metrics").begin_array();
  for (const MetricFamily& family : metric_families(state)) metric(json, family, start_ns, now_ns);
  json.end_array().end_object().end_array().end_object().end_array().end_object();
  return json.text();
}

}  // namespace vramscope::cli::top
