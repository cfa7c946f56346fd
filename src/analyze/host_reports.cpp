#include "analyze/host_reports.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "analyze/verdict/newest_reports.h"

namespace vramscope::analyze {

std::vector<HostGraph> built_graphs(const Store& store) {
  constexpr std::uint64_t kDeepest = 64;
  std::map<std::pair<std::string, std::string>, HostGraph> by_place;
  // By depth: growth of functions whose outer one has not been reported yet. Unsigned, because a file may say anything: sums
  // wrap.
  std::vector<std::uint64_t> inner(kDeepest + 2, 0);
  const auto add = [&](std::string_view function, std::string line, std::uint64_t ops, std::uint64_t bytes) {
    HostGraph& here = by_place[{std::string(function), std::move(line)}];
    here.traces += 1;
    here.ops += ops;
    here.bytes = static_cast<std::int64_t>(static_cast<std::uint64_t>(here.bytes) + bytes);
  };
  for (const trace::Report& report : store.reports) {
    if (const auto* const built = std::get_if<trace::BuiltLayers>(&report))
      add("layers", reported_line(store, *built), built->layers, built->bytes);
    const auto* const graph = std::get_if<trace::TracedGraph>(&report);
    if (graph == nullptr || graph->depth > kDeepest) continue;
    const std::uint64_t grown = graph->host_after - graph->host_before;
    inner[graph->depth] += grown;
    const std::uint64_t own = grown - std::exchange(inner[graph->depth + 1], 0);
    if (graph->depth == 0) inner[0] = 0;
    add(store.text(graph->function), reported_line(store, *graph), graph->ops, own);
  }
  std::vector<HostGraph> out;
  for (auto& [place, graph] : by_place) {
    std::tie(graph.function, graph.line) = place;
    out.push_back(std::move(graph));
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &HostGraph::bytes);
  return out;
}

std::vector<HostStage> pipeline_stages(const Store& store) {
  std::map<std::uint64_t, Bytes> counted;
  for (const trace::Report& report : store.reports)
    if (const auto* const buffer = std::get_if<trace::StageBuffer>(&report)) {
      Bytes& most = counted[buffer->number];
      most = std::max(most, buffer->bytes);
    }
  std::vector<trace::DatasetStage> stages = newest_reports<trace::DatasetStage>(store);
  std::ranges::stable_sort(stages, {}, &trace::DatasetStage::number);
  std::vector<HostStage> out;
  for (const trace::DatasetStage& stage : stages) {
    HostStage row;
    row.op = store.text(stage.op);
    row.line = reported_line(store, stage);
    row.elements = stage.elements;
    row.each = stage.bytes;
    if (stage.elements > 0 && stage.bytes > 0 && stage.bytes <= ~Bytes{0} / stage.elements)
      row.most = stage.elements * stage.bytes;
    if (const auto found = counted.find(stage.number); found != counted.end()) row.counted = found->second;
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<HostLine> python_lines(const Store& store) {
  std::map<std::uint64_t, Bytes> looks;
  for (const trace::Report& report : store.reports)
    if (const auto* const line = std::get_if<trace::HostLine>(&report)) looks[line->look] += line->bytes;
  const auto most = std::ranges::max_element(looks, {}, [](const auto& look) { return look.second; });
  if (most == looks.end()) return {};
  std::vector<HostLine> out;
  for (const trace::Report& report : store.reports) {
    const auto* const line = std::get_if<trace::HostLine>(&report);
    if (line == nullptr || line->look != most->first) continue;
    out.push_back({std::string(store.text(line->kind)), store.text(line->file).empty() ? "" : reported_line(store, *line),
                   line->bytes, line->blocks});
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &HostLine::bytes);
  return out;
}

}  // namespace vramscope::analyze
