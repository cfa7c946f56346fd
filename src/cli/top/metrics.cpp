#include "cli/top/metrics.h"

#include <fmt/format.h>

#include <functional>

namespace vramscope::cli::top {

namespace {

// Backslash, quote and line break are escaped; anything else may stand in a label.
std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string_view("\\n") : std::string_view(&c, 1);
  }
  return out;
}

std::string labels_text(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) out += fmt::format("{}{}=\"{}\"", out.empty() ? "" : ",", name, escaped(value));
  return out;
}

Labels labels_of(const Gpu& gpu) { return {{"gpu", std::to_string(gpu.index)}, {"name", gpu.name}}; }

Labels labels_of(const Process& process) {
  return {{"gpu", process.gpu < 0 ? "none" : std::to_string(process.gpu)},
          {"pid", std::to_string(process.pid)},
          {"framework", process.framework}};
}

template <typename Row>
struct Metric {
  std::string_view name, unit, help;
  bool counts;  // only ever grows
  std::function<std::optional<double>(const Row&)> value;
};

double real(Bytes bytes) { return static_cast<double>(bytes); }
std::optional<double> if_recorded(const Process& p, Bytes bytes) {
  return p.recorded ? std::optional(real(bytes)) : std::nullopt;
}

const std::vector<Metric<Gpu>>& gpu_metrics() {
  static const std::vector<Metric<Gpu>> kAll = {
      {"vramscope_device_used_bytes", "bytes", "Memory in use on the card, by all processes.", false,
       [](const Gpu& g) { return real(g.used); }},
      {"vramscope_device_total_bytes", "bytes", "Memory of the card.", false, [](const Gpu& g) { return real(g.total); }},
  };
  return kAll;
}

const std::vector<Metric<Process>>& process_metrics() {
  static const std::vector<Metric<Process>> kAll = {
      {"vramscope_process_device_bytes", "bytes", "Memory of a process on the card, as the driver reports it.", false,
       [](const Process& p) { return p.device ? std::optional(real(*p.device)) : std::nullopt; }},
      {"vramscope_live_bytes", "bytes", "Memory in blocks that a recorded process uses.", false,
       [](const Process& p) { return if_recorded(p, p.live); }},
      {"vramscope_pool_bytes", "bytes", "Memory that the pools of a recorded process hold.", false,
       [](const Process& p) { return if_recorded(p, p.pool); }},
      {"vramscope_peak_bytes", "bytes", "Highest live bytes of a recorded process.", false,
       [](const Process& p) { return if_recorded(p, p.peak); }},
      {"vramscope_limit_bytes", "bytes", "What the pools of a recorded process may take.", false,
       [](const Process& p) { return p.limit > 0 ? if_recorded(p, p.limit) : std::nullopt; }},
      {"vramscope_steady_peak_bytes", "bytes", "Highest live bytes of the steady steps.", false,
       [](const Process& p) { return p.steady_peak ? std::optional(real(*p.steady_peak)) : std::nullopt; }},
      {"vramscope_step", "", "Training step that a recorded process has reached.", false,
       [](const Process& p) { return p.step > 0 ? std::optional(static_cast<double>(p.step)) : std::nullopt; }},
      {"vramscope_out_of_memory", "", "Requests of a recorded process that failed.", true,
       [](const Process& p) { return if_recorded(p, p.ooms); }},
  };
  return kAll;
}

// Metrics without a sample are left out.
template <typename Row>
void add(std::vector<MetricFamily>& out, const std::vector<Metric<Row>>& metrics, const std::vector<Row>& rows) {
  for (const Metric<Row>& metric : metrics) {
    MetricFamily family{.name = metric.name, .unit = metric.unit, .help = metric.help, .counts = metric.counts, .samples = {}};
    for (const Row& row : rows)
      if (const auto value = metric.value(row)) family.samples.push_back({labels_of(row), *value});
    if (!family.samples.empty()) out.push_back(std::move(family));
  }
}

}  // namespace

std::vector<MetricFamily> metric_families(const State& state) {
  std::vector<MetricFamily> out;
  add(out, gpu_metrics(), state.gpus);
  add(out, process_metrics(), state.processes);
  return out;
}

std::string metrics_text(const State& state, MetricsFormat format) {
  const bool open = format == MetricsFormat::open_metrics;
  std::string out;
  for (const MetricFamily& metric : metric_families(state)) {
    const char* suffix = metric.counts ? "_total" : "";
    // OpenMetrics names a counter without the suffix of its samples, and knows units.
    const std::string family = fmt::format("{}{}", metric.name, open ? "" : suffix);
    out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", family, metric.help, metric.counts ? "counter" : "gauge");
    if (open && !metric.unit.empty()) out += fmt::format("# UNIT {} {}\n", family, metric.unit);
    for (const MetricSample& sample : metric.samples)
      out += fmt::format("{}{}{{{}}} {}\n", metric.name, suffix, labels_text(sample.labels), sample.value);
  }
  if (open) out += "# EOF\n";
  return out;
}

const char* content_type(MetricsFormat format) {
  return format == MetricsFormat::open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                               : "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace vramscope::cli::top
