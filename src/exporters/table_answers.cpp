// The answers of the engine as tables: steps, places, ledger, findings, failed requests, samples, settings; and the stacks that
// blocks refer to.
#include <set>

#include "analyze/block_rows.h"
#include "exporters/identity.h"
#include "exporters/table_list.h"

namespace vramscope::exporters {

namespace {

// Passes each element of a list to the sink, with the trace that it belongs to.
template <typename Content, std::size_t N, typename List>
Status rows_of(const std::array<ColumnOf<Identified<Content>>, N>& columns, const Request& request, RowSink& sink,
               const List& list) {
  const Identity trace = identity_of(request);
  for (const Content& content : list)
    if (!put_row<Identified<Content>>(columns, {trace, content}, sink)) break;
  return {};
}

struct StepContent {
  analyze::Step step;
  std::string place;
};
using StepOf = Identified<StepContent>;

constexpr std::array kSteps = {
    VS_IDENTITY(StepOf),
    VS_COLUMN(StepOf, "place", r.of.place),
    VS_COLUMN(StepOf, "kind", r.of.step.kind),
    VS_COLUMN(StepOf, "number", r.of.step.number),
    VS_COLUMN(StepOf, "epoch", r.of.step.epoch),
    VS_COLUMN(StepOf, "begin_us", r.of.step.begin_us),
    VS_COLUMN(StepOf, "end_us", r.of.step.end_us),
    VS_COLUMN(StepOf, "begin_moment", r.of.step.begin),
    VS_COLUMN(StepOf, "end_moment", r.of.step.end),
    VS_COLUMN(StepOf, "warmup", r.of.step.warmup),
    VS_COLUMN(StepOf, "outlier", r.of.step.outlier),
    VS_COLUMN(StepOf, "peak", r.of.step.peak),
    VS_COLUMN(StepOf, "before", r.of.step.before),
    VS_COLUMN(StepOf, "after", r.of.step.after),
    VS_COLUMN(StepOf, "growth", r.of.step.growth),
    VS_COLUMN(StepOf, "allocated", r.of.step.allocated),
    VS_COLUMN(StepOf, "freed", r.of.step.freed),
    VS_COLUMN(StepOf, "allocs", r.of.step.allocs),
    VS_COLUMN(StepOf, "frees", r.of.step.frees),
    VS_COLUMN(StepOf, "forward_peak", r.of.step.forward_peak),
    VS_COLUMN(StepOf, "backward_peak", r.of.step.backward_peak),
    VS_COLUMN(StepOf, "optimizer_peak", r.of.step.optimizer_peak),
};
constexpr auto kStepHeads = heads(kSteps);

Status step_rows(const Request& request, RowSink& sink) {
  std::vector<StepContent> all;
  const auto places = request.engine.places();
  for (std::size_t i = 0; i < places.size(); ++i)
    for (analyze::Step& step : request.engine.steps(static_cast<int>(i)).steps) all.push_back({std::move(step), places[i].name});
  return rows_of(kSteps, request, sink, all);
}

using PlaceOf = Identified<analyze::Place>;
constexpr std::array kPlaces = {
    VS_IDENTITY(PlaceOf),
    VS_COLUMN(PlaceOf, "place", r.of.name),
    VS_COLUMN(PlaceOf, "level", std::string_view(r.of.driver ? "driver" : "tensor")),
    VS_COLUMN(PlaceOf, "device", r.of.device),
    VS_COLUMN(PlaceOf, "allocs", r.of.allocs),
    VS_COLUMN(PlaceOf, "peak", r.of.peak),
    VS_COLUMN(PlaceOf, "peak_moment", r.of.peak_at),
    VS_COLUMN(PlaceOf, "steady_peak", r.of.steady_peak),
    VS_COLUMN(PlaceOf, "end", r.of.end),
    VS_COLUMN(PlaceOf, "regions_peak", r.of.regions_peak),
    VS_COLUMN(PlaceOf, "limit", r.of.limit),
    VS_COLUMN(PlaceOf, "order_exact", r.of.order_exact),
};
constexpr auto kPlaceHeads = heads(kPlaces);

Status place_rows(const Request& request, RowSink& sink) { return rows_of(kPlaces, request, sink, request.engine.places()); }

struct LedgerContent {
  std::string place, line, part;
  std::optional<std::uint64_t> bytes;
  std::optional<std::int64_t> residual;
  std::string note;
};
using LedgerOf = Identified<LedgerContent>;
constexpr std::array kLedger = {
    VS_IDENTITY(LedgerOf),
    VS_COLUMN(LedgerOf, "place", r.of.place),
    VS_COLUMN(LedgerOf, "line", r.of.line),
    VS_COLUMN(LedgerOf, "part", r.of.part),
    VS_COLUMN(LedgerOf, "bytes", r.of.bytes),
    VS_COLUMN(LedgerOf, "residual", r.of.residual),
    VS_COLUMN(LedgerOf, "note", r.of.note),
};
constexpr auto kLedgerHeads = heads(kLedger);

Status ledger_rows(const Request& request, RowSink& sink) {
  std::vector<LedgerContent> all;
  const auto ledger = request.engine.ledger(request.at, request.place);
  if (!ledger) return std::unexpected(ledger.error());
  const auto add = [&](const std::string& place, const analyze::LedgerLine& line) {
    all.push_back({place, line.name, {}, line.bytes, line.residual, line.note});
    for (const auto& [part, bytes] : line.parts) all.push_back({place, line.name, part, bytes, {}, {}});
  };
  for (const analyze::LedgerLine& line : ledger->lines) add(ledger->place, line);
  for (const analyze::LedgerLine& line : ledger->host) add("host", line);
  return rows_of(kLedger, request, sink, all);
}

using FindingOf = Identified<analyze::Finding>;
constexpr std::array kFindings = {
    VS_IDENTITY(FindingOf),
    VS_COLUMN(FindingOf, "finding", r.of.id),
    VS_COLUMN(FindingOf, "title", r.of.title),
    VS_COLUMN(FindingOf, "cause", r.of.cause),
    VS_COLUMN(FindingOf, "remedy", r.of.remedy),
    VS_COLUMN(FindingOf, "saving", r.of.at_stake),
    VS_COLUMN(FindingOf, "severity", r.of.severity),
};
constexpr auto kFindingHeads = heads(kFindings);

Status finding_rows(const Request& request, RowSink& sink) {
  return rows_of(kFindings, request, sink, request.engine.findings().findings);
}

using OomOf = Identified<analyze::OomEvent>;
constexpr std::array kOoms = {
    VS_IDENTITY(OomOf),
    VS_COLUMN(OomOf, "moment", r.of.at),
    VS_COLUMN(OomOf, "time_us", r.of.time_us),
    VS_COLUMN(OomOf, "step", r.of.step),
    VS_COLUMN(OomOf, "requested", r.of.requested),
    VS_COLUMN(OomOf, "live", r.of.live),
    VS_COLUMN(OomOf, "free", r.of.free),
    VS_COLUMN(OomOf, "largest_free", r.of.largest_free),
    VS_COLUMN(OomOf, "limit", r.of.limit),
    VS_COLUMN(OomOf, "op", r.of.op),
    VS_COLUMN(OomOf, "layer", r.of.layer),
    VS_COLUMN(OomOf, "line", r.of.line),
    VS_COLUMN(OomOf, "pool", r.of.pool),
    VS_COLUMN(OomOf, "verdict", r.of.verdict),
    VS_COLUMN(OomOf, "sentence", r.of.sentence),
};
constexpr auto kOomHeads = heads(kOoms);

Status oom_rows(const Request& request, RowSink& sink) { return rows_of(kOoms, request, sink, request.engine.ooms().events); }

using SampleOf = Identified<analyze::Sample>;
constexpr std::array kSamples = {
    VS_IDENTITY(SampleOf),
    VS_COLUMN(SampleOf, "time_us", r.of.time_us),
    VS_COLUMN(SampleOf, "device", r.of.device),
    VS_COLUMN(SampleOf, "used", r.of.used),
    VS_COLUMN(SampleOf, "total", r.of.total),
    VS_COLUMN(SampleOf, "process", r.of.process == trace::kNone ? std::nullopt : std::optional(r.of.process)),
    VS_COLUMN(SampleOf, "other", r.of.other),
};
constexpr auto kSampleHeads = heads(kSamples);

Status sample_rows(const Request& request, RowSink& sink) { return rows_of(kSamples, request, sink, request.engine.samples()); }

struct StackContent {
  std::uint32_t stack;
  std::uint64_t depth;
  analyze::Frame frame;
};
using StackOf = Identified<StackContent>;
constexpr std::array kStacks = {
    VS_IDENTITY(StackOf),
    VS_COLUMN(StackOf, "stack", r.of.stack),
    VS_COLUMN(StackOf, "depth", r.of.depth),
    VS_COLUMN(StackOf, "function", r.of.frame.function),
    VS_COLUMN(StackOf, "file", r.of.frame.file),
    VS_COLUMN(StackOf, "line", r.of.frame.line),
    VS_COLUMN(StackOf, "offset", r.of.frame.offset),
};
constexpr auto kStackHeads = heads(kStacks);

Status stack_rows(const Request& request, RowSink& sink) {
  std::set<std::uint32_t> used;
  analyze::BlockRows blocks(request.engine);
  for (std::uint64_t id = 0; id < blocks.size(); ++id)
    if (blocks.recorded(id)) used.insert(blocks.row(id).stack);
  std::vector<StackContent> all;
  for (const std::uint32_t stack : used) {
    const auto frames = request.engine.stack(stack);
    for (std::size_t depth = 0; depth < frames.size(); ++depth) all.push_back({stack, depth, frames[depth]});
  }
  return rows_of(kStacks, request, sink, all);
}

using Setting = std::pair<std::string, std::string>;
using SettingOf = Identified<Setting>;
constexpr std::array kSettings = {
    VS_IDENTITY(SettingOf),
    VS_COLUMN(SettingOf, "setting", r.of.first),
    VS_COLUMN(SettingOf, "value", r.of.second),
};
constexpr auto kSettingHeads = heads(kSettings);

Status setting_rows(const Request& request, RowSink& sink) {
  std::vector<Setting> all;
  for (const auto& [key, value] : request.engine.overview().settings) all.emplace_back(key, value);
  return rows_of(kSettings, request, sink, all);
}

}  // namespace

Table steps_table() { return {"steps", kStepHeads, step_rows}; }
Table places_table() { return {"places", kPlaceHeads, place_rows}; }
Table ledger_table() { return {"ledger", kLedgerHeads, ledger_rows, kTakesPlace | kTakesInstant}; }
Table findings_table() { return {"findings", kFindingHeads, finding_rows}; }
Table ooms_table() { return {"ooms", kOomHeads, oom_rows}; }
Table samples_table() { return {"samples", kSampleHeads, sample_rows}; }
Table stacks_table() { return {"stacks", kStackHeads, stack_rows}; }
Table settings_table() { return {"settings", kSettingHeads, setting_rows}; }

}  // namespace vramscope::exporters
