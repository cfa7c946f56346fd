// Failed requests: the state of the pool at that instant, each possible cause, what was live, and what would help.
#include <fmt/format.h>

#include <algorithm>

#include "serve/answer_parts.h"
#include "serve/engine_service.h"
#include "serve/failed_pool.h"
#include "support/sentence.h"

namespace vramscope::serve {

namespace {

using support::as_sentence;

// What the verdict advises, then every other finding with a saving: a request that is short of less than that would fit.
void add_remedies(const Opened& trace, const analyze::OomEvent& event, Oom& out) {
  const analyze::Ooms& ooms = trace.ooms();
  const bool of_last = !ooms.events.empty() && event.verdict == ooms.events.back().verdict;
  const std::string advice = of_last ? remedy_of_failure(trace) : std::string();
  if (!advice.empty()) {
    Remedy remedy{.text = advice, .enough = true};
    for (const analyze::OomCause& cause : event.causes)
      if (cause.cause == event.verdict && cause.bytes > 0) remedy.bytes = static_cast<double>(cause.bytes);
    out.remedies.push_back(std::move(remedy));
  }
  if (event.replay && (event.replay->largest_share || !event.replay->avoided_by.empty()))
    out.remedies.push_back({.text = event.replay->sentence, .enough = true});
  for (const analyze::Finding& finding : trace.findings().findings) {
    if (finding.view == "oom" || finding.remedy.empty() || finding.at_stake.value_or(0) == 0) continue;
    if (as_sentence(finding.remedy) == advice) {
      out.remedies.front().link = Link{finding.title, address(finding.view, instant_of(trace, finding), finding.where)};
      continue;
    }
    out.remedies.push_back({.bytes = static_cast<double>(*finding.at_stake),
                            .text = as_sentence(finding.remedy),
                            .enough = event.short_by > 0 && *finding.at_stake >= event.short_by,
                            .link = Link{finding.title, address(finding.view, instant_of(trace, finding), finding.where)}});
  }
}

void add_live(const analyze::Engine& engine, const analyze::OomEvent& event, const std::string& filter, Oom& out) {
  const auto live = engine.live({.at = fmt::format("moment:{}", event.at),
                                 .by = row_keys(),
                                 .where = filter,
                                 .place = failed_pool(engine, event.pool).place,
                                 .limit = kLiveRows});
  if (!live) return;
  out.matching = static_cast<double>(live->total);
  for (const analyze::Group& group : live->groups) out.rows.push_back(row_of_group(group, event.time_us, live->total));
  out.more_rows = live->rest_groups;
  out.more_bytes = static_cast<double>(live->rest_bytes);
}

Oom oom_of(const Opened& trace, const analyze::OomEvent& event, std::size_t number, const std::string& filter) {
  const analyze::Engine& engine = trace.engine();
  Oom out;
  out.at = fmt::format("oom:{}", number);
  out.sentence = event.sentence;
  out.t = static_cast<double>(event.time_us);
  if (event.step > 0) out.step = event.step;
  out.final = event.final;
  if (const int place = failed_pool(engine, event.pool).place; place >= 0)
    out.device = engine.places()[static_cast<std::size_t>(place)].name;
  out.pool = event.pool;
  out.requested = static_cast<double>(event.requested);
  out.live = static_cast<double>(event.live);
  out.held = static_cast<double>(event.regions);
  out.free = static_cast<double>(event.free);
  out.largest_free = static_cast<double>(event.largest_free);
  out.short_by = static_cast<double>(event.short_by);
  if (event.limit > 0) out.limit = static_cast<double>(event.limit);
  out.op = event.op;
  out.layer = event.layer;
  out.line = event.line;
  out.verdict = event.verdict;
  out.causes = event.causes;
  for (OomCause& cause : out.causes) cause.evidence = as_sentence(cause.evidence);
  add_remedies(trace, event, out);
  add_live(engine, event, filter, out);
  return out;
}

}  // namespace

FailedPool failed_pool(const analyze::Engine& engine, std::string_view name) {
  const auto names = engine.pool_names();
  const auto places = engine.places();
  for (std::size_t i = 0; i < places.size(); ++i)
    for (const std::uint32_t pool : places[i].pools)
      if (!places[i].driver && pool < names.size() && names[pool] == name) return {static_cast<int>(i), pool};
  return {};
}

Result<Ooms> EngineService::ooms(const OomsParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  if (const Status ok = trace.engine().check_filter(params.filter); !ok) return std::unexpected(ok.error());
  const analyze::Ooms& ooms = trace.ooms();
  Ooms out;
  out.sentence = ooms.sentence;
  out.optional = ooms.optional_refusals;
  for (std::size_t i = 0; i < ooms.events.size(); ++i) out.ooms.push_back(oom_of(trace, ooms.events[i], i + 1, params.filter));
  return out;
}

}  // namespace vramscope::serve
