// Why a request failed: every cause is tested by arithmetic on the recorded state, and says whether the request would have
// fitted without it.
#include <algorithm>

#include <fmt/format.h>

#include "analyze/oom_scene.h"
#include "analyze/op_names.h"
#include "analyze/state.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

std::string fits(Bytes live, Bytes requested, Bytes capacity) {
  return capacity == 0 ? "unknown" : live + requested <= capacity ? "yes" : "no";
}

OomCause fragmentation_cause(const OomScene& m) {
  OomCause out{"fragmentation", false, "unknown", 0, {}};
  out.holds = m.fragmented();
  out.would_fit = fits(m.live, m.requested, m.reach());
  out.bytes = out.holds ? m.requested - m.largest_piece() : 0;
  out.evidence = fmt::format("{} were free within {}, the largest piece was {}", format_size(m.free()), format_size(m.reach()),
                             format_size(m.largest_piece()));
  return out;
}

OomCause limit_cause(const OomScene& m) {
  OomCause out{"pool limit", false, "unknown", 0, {}};
  if (m.limit == 0) {
    out.evidence = "the pool's limit is not known";
    return out;
  }
  Bytes beyond = m.mine() - std::min(m.mine(), m.limit);
  if (m.card == 0) {
    out.evidence = fmt::format("the pool stops at {}; the size of the {} was not recorded", format_size(m.limit), m.where());
    return out;
  }
  // Without the limit the pool could take the rest of the card, as one more region.
  bool reached = m.regions + m.requested > m.limit;
  out.would_fit = m.mine() - std::min(m.mine(), m.regions) >= m.requested ? "yes" : "no";
  out.holds = reached && out.would_fit == "yes";
  out.bytes = beyond;
  out.evidence =
      fmt::format("the pool stops at {}, {} of the {} are beyond it", format_size(m.limit), format_size(beyond), m.where());
  return out;
}

OomCause other_process_cause(const OomScene& m) {
  OomCause out{"other process", false, "unknown", m.others, {}};
  if (m.card == 0 || m.on_host) {
    out.evidence = m.on_host ? "what other programs hold of the machine is not recorded" : "no sample of the card was recorded";
    return out;
  }
  Bytes mine = m.regions + m.outside;
  Bytes free_now = m.card - std::min(m.card, mine + m.others);
  bool grows = m.limit == 0 || m.regions + m.requested <= m.limit;
  out.would_fit = grows && free_now + m.others >= m.requested ? "yes" : "no";
  out.holds = m.others > 0 && grows && free_now < m.requested && out.would_fit == "yes";
  out.evidence = m.others == 0
                     ? "no other process held memory on the card"
                     : fmt::format("other processes hold {} of the card's {}", format_size(m.others), format_size(m.card));
  return out;
}

OomCause leak_cause(const OomScene& m, const Leaks& leaks) {
  OomCause out{"leak", leaks.verdict == "growing", "unknown", leaks.so_far, {}};
  if (out.holds) {
    out.would_fit = fits(m.live - std::min(m.live, leaks.so_far), m.requested, m.reach());
    // No region could hold it even if all were empty; without the leak others might have been taken.
    if (out.would_fit == "yes" && m.requested > std::max(m.largest_region, m.room())) out.would_fit = "unknown";
    out.evidence = fmt::format("{} a step since step {}, {} so far", format_size(static_cast<Bytes>(leaks.bytes_per_step)),
                               leaks.since_step, format_size(leaks.so_far));
  } else {
    out.would_fit = leaks.verdict == "not growing" ? "no" : "unknown";
    out.evidence = leaks.verdict == "not growing" ? "nothing grew from step to step" : leaks.why;
  }
  return out;
}

OomCause spike_cause(const OomScene& m) {
  OomCause out{"spike", false, "unknown", m.scratch + (m.request_is_scratch ? m.requested : 0), {}};
  Bytes capacity = m.reach();
  out.would_fit = m.request_is_scratch                                        ? "yes"
                  : m.scratch == 0                                            ? "no"
                  : std::max(m.hole_without_scratch, m.room()) >= m.requested ? "yes"
                  : fits(m.live - std::min(m.live, m.scratch), m.requested, capacity) == "no"
                      ? "no"
                      : "unknown";  // other blocks may lie between
  // A few bytes of scratch that come last are not why the memory is full.
  out.holds = out.bytes * 10 >= capacity && out.would_fit == "yes";
  out.evidence = m.request_is_scratch
                     ? fmt::format("the request itself is scratch, {} more of it were live", format_size(m.scratch))
                     : fmt::format("{} of what was live is scratch (workspaces, temporaries)", format_size(m.scratch));
  return out;
}

OomCause too_big_cause(const OomScene& m) {
  OomCause out{"too big", false, "unknown", 0, {}};
  // Alone, and with a pool that may take everything.
  Bytes capacity = m.card != 0 ? m.card - std::min(m.card, m.outside) : m.limit;
  if (capacity == 0) {
    out.evidence = "neither limit nor size of the card is known";
    return out;
  }
  out.holds = m.live + m.requested > capacity;
  out.bytes = out.holds ? m.live + m.requested - capacity : 0;
  out.would_fit = out.holds ? "yes" : "no";  // with that much less live
  out.evidence = out.holds
                     ? fmt::format("live and request together are {} above {}", format_size(out.bytes), format_size(capacity))
                     : fmt::format("live and request together are within {}", format_size(capacity));
  return out;
}

// The cause to act on: one without which it would fit, the avoidable ones first.
std::string main_cause(const std::vector<OomCause>& causes) {
  for (const OomCause& c : causes)
    if (c.holds && c.would_fit == "yes") return c.cause;
  for (const OomCause& c : causes)
    if (c.holds) return c.cause;
  return "unknown";
}

std::string sentence_of(const OomEvent& e, const OomScene& m) {
  std::string when = e.step > 0 ? fmt::format(" in step {}", e.step) : fmt::format(" at {}", support::format_duration(e.time_us));
  Bytes capacity = m.reach();
  std::string free = fmt::format("{} of the {} {} were free", format_size(m.free()), format_size(capacity),
                                 capacity == m.limit ? "limit" : "that the pool could take");
  std::string what;
  if (e.verdict == "fragmentation")
    what = fmt::format("Fragmented, not too big: the largest piece was {}.", format_size(e.largest_free));
  else if (e.verdict == "leak")
    what = "A leak filled the memory; without it the request would fit.";
  else if (e.verdict == "spike")
    what = "A temporary spike, not the model: without the scratch it would fit.";
  else if (e.verdict == "pool limit")
    what = fmt::format("The pool's own limit, not the {}: there is room beyond it.", m.where());
  else if (e.verdict == "other process")
    what = "Another process holds the room that is missing.";
  else if (e.verdict == "too big" && e.requested > capacity)
    what = "Too big, not fragmented: it would not fit into an empty pool.";
  else if (e.verdict == "too big")
    what = fmt::format("Too big, not fragmented: at least {} less must be live to get past this point.", format_size(e.short_by));
  else
    what = "The recorded state does not tell the cause.";
  return fmt::format("Out of memory{}: {} were asked for, {}. {}", when, format_size(e.requested), free, what);
}

// Limits are set in whole MiB.
std::string raise_advice(Bytes limit, Bytes raise) {
  constexpr Bytes kMiB = 1u << 20;
  Bytes enough = (limit + raise + kMiB - 1) / kMiB * kMiB;
  return fmt::format("raise the limit by {} to {} MiB, which serves this request", format_size(enough - limit),
                     support::format_count(enough / kMiB));
}

}  // namespace

Ooms Engine::ooms() const { return ooms({}).value_or(Ooms{}); }

Result<Ooms> Engine::ooms(std::string_view filter_text) const {
  const State& s = *state_;
  if (auto filter = s.filter(filter_text); !filter) return std::unexpected(filter.error());
  const Store& store = s.store;
  Ooms out;
  Bytes raise = 0;  // of the limit, for the last one
  for (const auto& o : store.ooms) {
    if (!o.row.final) {
      out.optional_refusals += 1;
      continue;
    }
    if (out.events.size() >= kMostFailures) continue;
    auto where = failed_pool(s, o.row);
    if (!where) continue;
    const trace::Site& site = store.words().sites[static_cast<std::size_t>(o.row.site)];
    const trace::Pool& pool = store.words().pools[where->pool];
    OomScene m = scene_of(s, *where, o);
    OomEvent e;
    e.at = o.pos;
    e.time_us = o.time_us;
    e.step = s.step_number(o.pos + 1);
    e.final = true;
    e.requested = m.requested;
    e.op = store.text(site.op);
    e.pool = store.text(pool.name);
    e.layer = meaning_of(e.op, store.text(site.region), pool.framework).layer;
    e.live = m.live;
    e.regions = m.regions;
    e.limit = m.limit;
    e.free = m.free();
    e.largest_free = m.largest_piece();
    Leaks leaking;
    if (auto l = leaks(where->index)) leaking = std::move(*l);
    e.causes = {leak_cause(m, leaking), spike_cause(m),         fragmentation_cause(m),
                limit_cause(m),         other_process_cause(m), too_big_cause(m)};
    e.verdict = main_cause(e.causes);
    e.short_by = e.requested - std::min(e.requested, e.largest_free);  // free bytes elsewhere cannot join the largest piece
    raise = m.raise();
    e.sentence = sentence_of(e, m);
    LiveRequest live_request;
    live_request.at = fmt::format("moment:{}", o.pos);
    live_request.by = {By::category, By::layer, By::op};
    live_request.place = where->index;
    live_request.where = filter_text;
    live_request.limit = 20;
    if (auto set = live(live_request)) e.live_set = std::move(set->groups);
    out.events.push_back(std::move(e));
  }
  std::string harmless = out.optional_refusals > 0
                             ? fmt::format(" ({} earlier were optional workspaces and did no harm.)",
                                           support::format_plural(out.optional_refusals, "refusal", "refusals"))
                             : "";
  if (out.events.empty()) {
    out.sentence = fmt::format("No request failed.{}", harmless);
    return out;
  }
  const OomEvent& last = out.events.back();
  out.sentence = last.sentence + harmless;
  if (last.verdict == "fragmentation")
    out.advice = "use one region: a memory limit instead of growth, or allocate the largest block first";
  else if (last.verdict == "leak")
    out.advice = "see vramscope leaks";
  else if (last.verdict == "spike")
    out.advice = "limit the workspace (TF_CUDNN_WORKSPACE_LIMIT_IN_MB) or turn autotuning off";
  else if (last.verdict == "pool limit")
    out.advice = raise_advice(last.limit, raise);
  else if (last.verdict == "other process")
    out.advice = "end the other process or use another card";
  else if (last.verdict == "too big")
    out.advice =
        fmt::format("a smaller batch, mixed precision or checkpointing must save at least {}", format_size(last.short_by));
  return out;
}

}  // namespace vramscope::analyze
