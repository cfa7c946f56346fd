#include "analyze/verdict/findings_reported.h"

#include <algorithm>

#include <fmt/format.h>

#include "analyze/framework.h"
#include "analyze/host_reports.h"
#include "analyze/verdict/float64_entry.h"
#include "analyze/verdict/newest_reports.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

constexpr std::uint64_t kManyTraces = 5;
constexpr Bytes kWorthSaying = Bytes{1} << 20;  // of host memory, beside something else

bool was_recorded(const Store& store, const Framework& framework) {
  return std::ranges::any_of(framework.version_settings, [&](std::string_view key) {
    return std::ranges::find(store.settings, key, &SettingText::key) != store.settings.end();
  });
}

// Those of the framework that was recorded; of several, of one that builds graphs, as is assumed where none is known.
Retraces words_for_retraces(const Store& store) {
  const auto rank = [&](const Framework* each) {
    return each->retraces.what.empty() ? 0 : 1 + (each->names_graph_ops ? 1 : 0) + (was_recorded(store, *each) ? 2 : 0);
  };
  return (*std::ranges::max_element(frameworks(), {}, rank))->retraces;
}

// What the graphs of one line added to host memory; 0 if they added nothing.
Bytes added_at(const std::vector<HostGraph>& graphs, const std::string& line) {
  std::int64_t sum = 0;
  for (const HostGraph& graph : graphs)
    if (graph.line == line) sum = std::max(sum, graph.bytes);
  return static_cast<Bytes>(sum);
}

Finding retrace(const Store& store, const trace::Retrace& retraced, Bytes added) {
  const Retraces words = words_for_retraces(store);
  const std::string_view reason = store.text(retraced.reason);
  return {"retrace",
          fmt::format("{} at {} {}.", store.text(retraced.function), reported_line(store, retraced),
                      fmt::format(fmt::runtime(words.what), retraced.traces)),
          added >= kWorthSaying ? fmt::format("{}; its graphs added {} of host memory.", reason, format_size(added))
                                : std::string(reason),
          std::string(words.remedy),
          {},
          "steps",
          "peak",
          ""};
}

Finding float64(const Measured& measured, const std::string& line, Bytes variable) {
  Bytes bytes = std::max(measured.float64, variable);
  return {"float64",
          fmt::format("{} at the peak is float64; it enters at {}.", format_size(bytes), line),
          "Each of these tensors takes twice the bytes of float32.",
          "Cast to float32 there.",
          measured.float64 >= variable ? measured.float64_saving : bytes / 2,
          "peak",
          "steady",
          "dtype:float64"};
}

}  // namespace

std::vector<Finding> reported_findings(const Store& store, const Measured& measured) {
  std::vector<Finding> out;
  const std::vector<HostGraph> graphs = built_graphs(store);
  for (const auto& retraced : newest_reports<trace::Retrace>(store))
    if (retraced.traces >= kManyTraces) out.push_back(retrace(store, retraced, added_at(graphs, reported_line(store, retraced))));
  if (const Bytes variable = widest_variable(store); variable > 0 || measured.float64 > 0) {
    const std::string line = float64_entry(store);
    out.push_back(float64(measured, line.empty() ? "an op without a line" : line, variable));
  }
  return out;
}

}  // namespace vramscope::analyze
