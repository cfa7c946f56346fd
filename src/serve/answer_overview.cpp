// Hello and Overview: what is here, and the answer in one screen.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "analyze/absent.h"
#include "analyze/captions.h"
#include "analyze/framework.h"
#include "analyze/gen/texts.h"
#include "analyze/key_figures.h"
#include "analyze/labels.h"
#include "analyze/source_words.h"
#include "analyze/verdict/ranks.h"
#include "serve/answer_parts.h"
#include "serve/engine_service.h"
#include "support/sentence.h"
#include "support/units.h"

namespace vramscope::serve {

namespace {

std::string framework_of(const analyze::Overview& overview) {
  for (const analyze::Framework* framework : analyze::frameworks())
    for (const std::string_view key : framework->version_settings)
      if (const std::string version = setting(overview, key); !version.empty())
        return fmt::format("{} {}", framework->name, version);
  return {};
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::uint64_t lost_of(const analyze::Overview& overview) {
  std::uint64_t sum = 0;
  for (const auto& [kind, count] : overview.lost) sum += count;
  return sum;
}

TraceInfo info_of(const Opened& trace, std::size_t id, const std::string& name, bool live) {
  const analyze::Overview& o = trace.overview();
  const analyze::Steps& steps = trace.steps();
  const analyze::Place* place = main_place(trace.engine());
  TraceInfo info;
  info.id = id;
  info.name = name;
  const std::string command = setting(o, "process.command");
  info.command = command.empty() ? base_name(o.program) : support::short_command(command);
  const std::string pid = setting(o, "process.pid");
  std::from_chars(pid.data(), pid.data() + pid.size(), info.pid);
  info.rank = o.rank;
  info.host = setting(o, "host");
  info.framework = framework_of(o);
  info.state = live && o.truncated ? "live" : o.damage.empty() && !o.truncated ? "complete" : "incomplete";
  info.events = o.events;
  info.lost = lost_of(o);
  info.started_us = o.start_realtime_us;
  info.duration_us = static_cast<double>(std::max<std::uint64_t>(1, o.duration_us));
  info.steps = steps.steps.size();
  info.epochs = analyze::epochs_of(steps);
  if (place != nullptr) {
    info.device = analyze::label_of_device(*place);
    for (const analyze::Sample& sample : trace.samples())
      if (sample.device == place->device && sample.total > 0) info.device_bytes = sample.total;
    info.peak = place->peak;
    info.at_least = !place->order_exact;
    if (place->steady) info.steady_peak = place->steady_peak;
  }
  if (info.state != "live") info.damage = analyze::absence(o);
  if (const auto& leaks = trace.leaks(); leaks) {
    if (leaks->verdict != "cannot tell") info.growth = leaks->bytes_per_step;
    info.verdict = analyze::trouble_of(trace.engine(), *leaks);
  }
  info.notes = analyze::captions(o, steps);
  return info;
}

Ledger ledger_of(const analyze::Ledger& from, const analyze::NamedInstant& instant) {
  Ledger out;
  out.at = instant.name;
  out.title = instant.title;
  out.t = static_cast<double>(from.time_us);
  out.unit = from.unit;
  if (from.card > 0) {
    LedgerLine card;
    card.name = "Card";
    card.bytes = static_cast<double>(from.card);
    if (const auto* used = analyze::line_named(from, "device used"); used != nullptr && used->bytes)
      card.parts = {{"used", static_cast<double>(*used->bytes), "open", ""}};
    out.lines.push_back(std::move(card));
  }
  const auto categories = analyze::category_names();
  for (std::size_t i = 0; i < from.lines.size(); ++i) {
    const analyze::LedgerLine& line = from.lines[i];
    LedgerLine to;
    to.name = line.name == "live blocks by category" ? "Categories" : support::capitalized(line.name);
    if (line.bytes) to.bytes = static_cast<double>(*line.bytes);
    if (line.residual) to.residual = static_cast<double>(*line.residual);
    to.unexplained = line.unexplained;
    to.missing = line.bytes ? "" : line.note;
    for (const auto& [name, bytes] : line.parts) {
      const bool category = std::find(categories.begin(), categories.end(), name) != categories.end();
      const bool free = name.find("free") != std::string::npos || name.find("cached") != std::string::npos;
      const bool opens =
          i + 1 < from.lines.size() && (from.lines[i + 1].name == name || from.lines[i + 1].name.starts_with(name));
      to.parts.push_back({name, static_cast<double>(bytes),
                          category                    ? "category"
                          : free                      ? "free"
                          : opens || to.parts.empty() ? "open"
                                                      : "rest",
                          category ? name : ""});
    }
    out.lines.push_back(std::move(to));
  }
  for (const auto& line : from.host)
    if (line.bytes) out.host.push_back({line.name, static_cast<double>(*line.bytes), "rest", ""});
  return out;
}

}  // namespace

Result<Hello> EngineService::hello(const HelloParams&) {
  Hello out;
  out.protocol = kProtocol;
  out.version = VRAMSCOPE_VERSION;
  out.live = library_->live();
  for (std::size_t i = 0; i < library_->size(); ++i) {
    const auto engine = library_->trace(i);
    if (engine) {
      out.traces.push_back(info_of(**engine, i, library_->name(i), out.live));
      continue;
    }
    TraceInfo info;
    info.id = i;
    info.name = library_->name(i);
    info.state = "damaged";
    info.error = engine.error().message;
    out.traces.push_back(std::move(info));
  }
  std::vector<analyze::Process> processes;
  for (const TraceInfo& info : out.traces)
    processes.push_back({info.name, info.rank, info.peak, info.verdict, info.error.empty()});
  analyze::Processes compared = analyze::compare_processes(processes);
  out.sentence = std::move(compared.sentence);
  out.order = std::move(compared.order);
  return out;
}

Result<Overview> EngineService::overview(const OverviewParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const analyze::Overview& o = trace.overview();
  const analyze::Steps& steps = trace.steps();
  const analyze::Place* place = main_place(engine);
  Overview out;
  out.trace = info_of(trace, params.trace, library_->name(params.trace), library_->live());
  if (const std::string source = analyze::source_in_words(o); !source.empty())
    out.source = support::as_sentence("this trace was " + source);
  out.sentence = analyze::headline(o, trace.findings());
  out.end_t = static_cast<double>(o.duration_us);
  const analyze::Leaks* leaks = trace.leaks() ? &*trace.leaks() : nullptr;
  std::optional<analyze::Ledger> first;
  for (const analyze::NamedInstant& instant : analyze::kNamedInstants) {
    if (instant.name == analyze::kSteadyPeak.name && (place == nullptr || !place->steady)) continue;
    auto ledger = engine.ledger(instant.name);
    if (!ledger) continue;
    out.ledgers.push_back(ledger_of(*ledger, instant));
    if (!first) first = std::move(*ledger);
  }
  out.figures = analyze::key_figures(engine, steps, leaks, first ? &*first : nullptr);
  const analyze::Findings& findings = trace.findings();
  for (const auto& f : findings.findings) {
    Finding finding{.title = f.title,
                    .cause = support::as_sentence(f.cause),
                    .remedy = support::as_sentence(f.remedy),
                    .severity = f.severity};
    if (f.id == "oom") finding.remedy = remedy_of_failure(trace);
    if (f.at_stake) finding.bytes = static_cast<double>(*f.at_stake);
    if (!f.view.empty()) {
      const std::string what = analyze::label_of(f);
      finding.link = Link{fmt::format("{}{}{}", view_for(f.view).title, what.empty() ? "" : ", ", what),
                          address(f.view, instant_of(trace, f), f.where)};
    }
    out.findings.push_back(std::move(finding));
  }
  out.checked = findings.also_checked;
  out.pools = engine.pool_names();
  if (place != nullptr) {
    out.peak_t = static_cast<double>(engine.time_of(place->peak_at));
    if (place->steady) out.steady_t = static_cast<double>(engine.time_of(place->steady_peak_at));
  }
  const auto nav = [&](std::string view, std::string text, std::optional<double> bytes = std::nullopt) {
    out.nav.push_back({std::move(view), std::move(text), bytes});
  };
  nav("overview", findings.findings.empty() ? "" : fmt::format("{}", findings.findings.size()));
  nav("timeline", support::format_duration(o.duration_us));
  if (place != nullptr) nav("peak", "", static_cast<double>(place->steady ? place->steady_peak : place->peak));
  nav("steps", analyze::label_of_count(steps.steps.size()));
  if (const auto layers = engine.layers(usable_instant(engine, "steady"))) nav("layers", analyze::label_of_count(layers->layers));
  if (leaks != nullptr) nav("leaks", analyze::label_of(*leaks));
  if (place != nullptr && place->regions_end > 0) nav("map", "", static_cast<double>(place->regions_end));
  nav("oom", analyze::label_of_count(o.ooms));
  return out;
}

}  // namespace vramscope::serve
