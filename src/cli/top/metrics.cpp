#include "cli/top/metrics.h"

#include <fmt/format.h>

#include <functional>

namespace vramscope::cli::top {

namespace {

// Backslash, quote and line break are escaped; anything else may stand in a label.
std::string label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string_view("\\n") : std::string_view(&c, 1);
  }
  return out;
}

std::string gpu_labels(const Gpu& gpu) { return fmt::format("gpu=\"{}\",name=\"{}\"", gpu.index, label(gpu.name)); }

std::string process_labels(const Process& process) {
  return fmt::format("gpu=\"{}\",pid=\"{}\",framework=\"{}\"", process.gpu < 0 ? "none" : std::to_string(process.gpu),
                     process.pid, label(process.framework));
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

template <typename Row, typename Labels>
void add(std::string& out, MetricsFormat format, const Metric<Row>& metric, const std::vector<Row>& rows, const Labels& labels) {
  std::string samples;
  const std::string suffix = metric.counts ? "_total" : "";
  for (const Row& row : rows)
    if (const auto value = metric.value(row)) samples += fmt::format("{}{}{{{}}} {}\n", metric.name, suffix, labels(row), *value);
  if (samples.empty()) return;
  // OpenMetrics names a counter without the suffix of its samples, and knows units.
  const bool open = format == MetricsFormat::open_metrics;
  const std::string family = fmt::format("{}{}", metric.name, open ? "" : suffix);
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", family, metric.help, metric.counts ? "counter" : "gauge");
  if (open && !metric.unit.empty()) out += fmt::format("# UNIT {} {}\n", family, metric.unit);
  out += samples;
}

}  // namespace

std::string metrics_text(const State& state, MetricsFormat format) {
  std::string out;
  for (const auto& metric : gpu_metrics()) add(out, format, metric, state.gpus, gpu_labels);
  for (const auto& metric : process_metrics()) add(out, format, metric, state.processes, process_labels);
  if (format == MetricsFormat::open_metrics) out += "# EOF\n";
  return out;
}

const char* content_type(MetricsFormat format) {
  return format == MetricsFormat::open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                               : "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace vramscope::cli::top
