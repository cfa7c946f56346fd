// Why a request failed: every cause is tested by arithmetic on the recorded state, and states whether the request would have
// fit without it.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyze/query/device_at.h"
#include "analyze/query/state.h"
#include "analyze/verdict/oom_replay.h"
#include "analyze/verdict/oom_request.h"
#include "analyze/verdict/oom_scene.h"
#include "analyze/verdict/program_plan.h"
#include "analyze/verdict/remedies.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

std::string fits(Bytes live, Bytes requested, Bytes capacity) {
  return capacity == 0 ? "unknown" : live + requested <= capacity ? "yes" : "no";
}

OomCause fragmentation_cause(const OomScene& scene) {
  OomCause out{"fragmentation", false, "unknown", 0, {}};
  if (!scene.free_known()) {
    out.evidence = "neither the pool's regions nor its limit was recorded";
    return out;
  }
  out.holds = scene.fragmented();
  out.would_fit = fits(scene.live, scene.requested, scene.reach());
  out.bytes = out.holds ? scene.requested - scene.largest_piece() : 0;
  out.evidence = fmt::format("{} was free within {}; the largest piece was {}", format_size(scene.free()),
                             format_size(scene.reach()), format_size(scene.largest_piece()));
  return out;
}

OomCause limit_cause(const OomScene& scene) {
  OomCause out{"pool limit", false, "unknown", 0, {}};
  if (scene.limit == 0) {
    out.evidence = "the pool's limit is not known";
    return out;
  }
  Bytes beyond = scene.mine() - std::min(scene.mine(), scene.limit);
  if (scene.card == 0) {
    out.evidence =
        fmt::format("the pool stops at {}; the size of the {} was not recorded", format_size(scene.limit), scene.where());
    return out;
  }
  // Without the limit, the pool could take the rest of the card as one more region.
  bool reached = scene.regions + scene.requested > scene.limit;
  out.would_fit = scene.mine() - std::min(scene.mine(), scene.regions) >= scene.requested ? "yes" : "no";
  out.holds = reached && out.would_fit == "yes";
  out.bytes = beyond;
  out.evidence = fmt::format("the pool stops at {}; {} of the {} is beyond it", format_size(scene.limit), format_size(beyond),
                             scene.where());
  return out;
}

OomCause other_process_cause(const OomScene& scene) {
  OomCause out{"other process", false, "unknown", scene.others, {}};
  if (scene.card == 0 || scene.on_host) {
    out.evidence = scene.on_host ? "the memory of other programs on this machine is not recorded" : kNoSample;
    return out;
  }
  Bytes mine = scene.regions + scene.outside;
  Bytes free_now = scene.card - std::min(scene.card, mine + scene.others);
  bool grows = scene.limit == 0 || scene.regions + scene.requested <= scene.limit;
  out.would_fit = grows && free_now + scene.others >= scene.requested ? "yes" : "no";
  out.holds = scene.others > 0 && grows && free_now < scene.requested && out.would_fit == "yes";
  out.evidence = scene.others == 0 ? "no other process held memory on the card"
                                   : fmt::format("other processes hold {} of the card's {}", format_size(scene.others),
                                                 format_size(scene.card));
  return out;
}

OomCause leak_cause(const OomScene& scene, const Leaks& leaks) {
  OomCause out{"leak", leaks.verdict == "growing", "unknown", leaks.so_far, {}};
  if (out.holds) {
    const Bytes capacity = scene.free_known() ? scene.reach() : 0;
    out.would_fit = fits(scene.live - std::min(scene.live, leaks.so_far), scene.requested, capacity);
    // No region could hold it even if all were empty; without the leak, others might have been allocated.
    if (out.would_fit == "yes" && scene.requested > std::max(scene.largest_region, scene.room())) out.would_fit = "unknown";
    out.evidence = fmt::format("{} per step since step {}, {} so far", format_size(static_cast<Bytes>(leaks.bytes_per_step)),
                               leaks.since_step, format_size(leaks.so_far));
  } else {
    out.would_fit = leaks.verdict == "not growing" ? "no" : "unknown";
    out.evidence = leaks.verdict == "not growing" ? "nothing grew from step to step" : leaks.why;
  }
  return out;
}

OomCause spike_cause(const OomScene& scene) {
  OomCause out{"spike", false, "unknown", scene.scratch + (scene.request_is_scratch ? scene.requested : 0), {}};
  const Bytes capacity = scene.free_known() ? scene.reach() : 0;
  out.would_fit = scene.request_is_scratch                                                ? "yes"
                  : scene.scratch == 0                                                    ? "no"
                  : std::max(scene.hole_without_scratch, scene.room()) >= scene.requested ? "yes"
                  : fits(scene.live - std::min(scene.live, scene.scratch), scene.requested, capacity) == "no"
                      ? "no"
                      : "unknown";  // other blocks may be in between
  // A few bytes of workspace that come last are not why the memory is full.
  out.holds = capacity > 0 && out.bytes * 10 >= capacity && out.would_fit == "yes";
  out.evidence = scene.request_is_scratch
                     ? fmt::format("the request itself is workspace; {} more workspace was live", format_size(scene.scratch))
                     : fmt::format("{} of what was live is workspace", format_size(scene.scratch));
  return out;
}

OomCause too_big_cause(const OomScene& scene) {
  OomCause out{"too big", false, "unknown", 0, {}};
  // Alone, and with a pool that may take everything.
  Bytes capacity = scene.card != 0 ? scene.card - std::min(scene.card, scene.outside) : scene.limit;
  if (capacity == 0) {
    out.evidence = "neither the limit nor the size of the card is known";
    return out;
  }
  out.holds = scene.live + scene.requested > capacity;
  out.bytes = out.holds ? scene.live + scene.requested - capacity : 0;
  out.would_fit = out.holds ? "yes" : "no";  // with that much less live
  out.evidence = out.holds ? fmt::format("live memory and the request together are {} above {}", format_size(out.bytes),
                                         format_size(capacity))
                           : fmt::format("live memory and the request together are within {}", format_size(capacity));
  return out;
}

// The cause to act on: one without which it would fit, avoidable ones first.
std::string main_cause(const std::vector<OomCause>& causes) {
  for (const OomCause& c : causes)
    if (c.holds && c.would_fit == "yes") return c.cause;
  for (const OomCause& c : causes)
    if (c.holds) return c.cause;
  return "unknown";
}

std::string free_in_words(const OomScene& scene) {
  if (!scene.free_known()) return "and how much was free is not known";
  const Bytes capacity = scene.reach();
  return fmt::format("{} of the {} {} was free", format_size(scene.free()), format_size(capacity),
                     !scene.reach_known()      ? "that the pool held"
                     : capacity == scene.limit ? "limit"
                                               : "that the pool could take");
}

std::string sentence_of(const OomEvent& e, const OomScene& scene, const OomRequest& request) {
  std::string when = e.step > 0 ? fmt::format(" in step {}", e.step) : fmt::format(" at {}", support::format_duration(e.time_us));
  std::string what;
  if (e.verdict == "fragmentation")
    what = fmt::format("Fragmented, not too big: the largest piece was {}.", format_size(e.largest_free));
  else if (e.verdict == "leak")
    what = "A leak filled the memory; without it the request would fit.";
  else if (e.verdict == "spike")
    what = "A temporary spike, not the model: without the workspace it would fit.";
  else if (e.verdict == "pool limit")
    what = fmt::format("The pool's own limit, not the {}: there is room beyond it.", scene.where());
  else if (e.verdict == "other process")
    what = "Another process holds the memory that is missing.";
  else if (e.verdict == "too big" && e.requested > scene.reach())
    what = "Too big, not fragmented: it would not fit into an empty pool.";
  else if (e.verdict == "too big")
    what = fmt::format("Too big, not fragmented: at least {} less must be live to get past this point.", format_size(e.short_by));
  else
    what = "The cause cannot be determined from what was recorded.";
  const std::string purpose = in_words(request);
  return fmt::format("Out of memory{}: {} was requested{}, {}. {}", when, format_size(e.requested),
                     purpose.empty() ? "" : " for " + purpose, free_in_words(scene), what);
}

// Limits are set in whole MiB.
std::string raise_advice(Bytes limit, Bytes raise, std::string_view setting) {
  constexpr Bytes kMiB = 1u << 20;
  Bytes enough = (limit + raise + kMiB - 1) / kMiB * kMiB;
  return fmt::format("raise the limit{} by {} to {} MiB, which serves this request",
                     setting.empty() ? "" : fmt::format(" ({})", setting), format_size(enough - limit),
                     support::format_count(enough / kMiB));
}

// The largest batch that fits: from the replay if there is one, otherwise from what is live. Empty if it is not known.
std::string batch_advice(const OomEvent& e, const OomScene& scene, const OomRequest& request, const LiveAtOom& live) {
  if (e.replay && e.replay->largest)
    return fmt::format("use a batch of at most {} instead of {}", support::format_count(*e.replay->largest),
                       support::format_count(*e.replay->batch));
  const unsigned percent = e.replay && e.replay->largest_share
                               ? static_cast<unsigned>(std::lround(100 * *e.replay->largest_share))
                               : fitting_percent(live, request, scene.requested, scene.reach());
  return percent == 0 ? "" : fmt::format("use a batch of at most {} % of this one", percent);
}

// What to do about a request that is too big for what it may use. A smaller batch helps only if the request depends on it.
std::string fit_advice(const OomEvent& e, const OomScene& scene, const OomRequest& request, const LiveAtOom& live,
                       trace::Framework framework) {
  const std::string precision(remedy_for(Remedy::lower_precision, framework));
  if (!grows_with_batch(request.category) && live.parameters + live.optimizer_state > live.with_batch)
    return fmt::format("make the model smaller or use {}: {} is parameters and {} optimizer state, whatever the batch", precision,
                       format_size(live.parameters), format_size(live.optimizer_state));
  std::vector<std::string> ways;
  const std::string batch = batch_advice(e, scene, request, live);
  ways.push_back(batch.empty() ? "use a smaller batch" : batch);
  ways.push_back("use " + precision);
  if (!live.largest_layer.empty())
    ways.push_back(fmt::format("recompute the activations of {}, which hold {} ({})", live.largest_layer,
                               format_size(live.largest_activations), remedy_for(Remedy::recompute_activations, framework)));
  return fmt::format("{}; at least {} must be saved", fmt::join(ways, ", or "), format_size(e.short_by));
}

std::string advice_of(const OomEvent& e, const OomScene& scene, const OomRequest& request, const LiveAtOom& live,
                      const Leaks& leaking, trace::Framework framework) {
  if (e.verdict == "fragmentation" && e.replay && !e.replay->avoided_by.empty())
    return fmt::format("set {}: a replay with it serves the request", e.replay->avoided_by.front().setting);
  if (e.verdict == "fragmentation" && scene.largest_region == scene.regions && scene.regions > 0) {
    // One region already: only what lies in it can change.
    const std::string batch = e.replay && e.replay->largest ? batch_advice(e, scene, request, live) : std::string();
    return "free what keeps the holes apart earlier, or allocate it first ('vramscope fragmentation' names it)" +
           (batch.empty() ? "" : "; or " + batch);
  }
  if (e.verdict == "fragmentation") return std::string(remedy_for(Remedy::avoid_fragmentation, framework));
  if (e.verdict == "leak") return leaking.advice.empty() ? "see 'vramscope leaks' for what grows" : leaking.advice;
  // On the host no library tries algorithms.
  if (e.verdict == "spike" && !scene.on_host) return std::string(remedy_for(Remedy::limit_autotuning, framework));
  if (e.verdict == "spike") return fit_advice(e, scene, request, live, framework);
  if (e.verdict == "pool limit") {
    const auto setting = remedy_for(scene.on_host ? Remedy::raise_host_limit : Remedy::raise_limit, framework);
    std::string out = raise_advice(e.limit, scene.raise(), setting);
    if (const std::string batch = batch_advice(e, scene, request, live); !batch.empty()) out += "; or " + batch;
    return out;
  }
  if (e.verdict == "other process") return "stop the other process, or use another card";
  if (e.verdict == "too big") return fit_advice(e, scene, request, live, framework);
  return {};
}

// The failed request and the state of its pool, without the causes.
OomEvent event_of(const Engine::State& s, const Stamped<trace::Oom>& oom, const FailedPool& where, const OomScene& scene) {
  const Store& store = s.store;
  const trace::Site& site = store.dictionaries().sites[static_cast<std::size_t>(oom.row.site)];
  const trace::Pool& pool = store.dictionaries().pools[where.pool];
  OomEvent e;
  e.at = oom.pos;
  e.time_us = oom.time_us;
  e.step = s.step_number(oom.pos + 1);
  e.final = true;
  e.requested = scene.requested;
  e.op = store.text(site.op);
  e.pool = store.text(pool.name);
  e.live = scene.live;
  e.limit = scene.limit;
  e.free = scene.free();
  e.largest_free = scene.largest_piece();
  // Free bytes elsewhere cannot join the largest piece.
  if (scene.free_known()) {
    e.regions = scene.regions;
    e.short_by = e.requested - std::min(e.requested, e.largest_free);
  }
  return e;
}

std::vector<Group> live_set_of(const Engine& engine, Moment at, int place, std::string_view where) {
  LiveRequest request;
  request.at = fmt::format("moment:{}", at);
  request.by = {By::category, By::layer, By::op};
  request.place = place;
  request.where = where;
  request.limit = 20;
  auto live = engine.live(request);
  return live ? std::move(live->groups) : std::vector<Group>();
}

using Failed = std::pair<const Stamped<trace::Oom>*, FailedPool>;

std::vector<Failed> examined_failures(const Engine::State& s) {
  std::vector<Failed> out;
  for (const auto& oom : s.store.ooms) {
    if (!oom.row.final || out.size() >= kMostFailures) continue;
    if (auto where = failed_pool(s, oom.row)) out.emplace_back(&oom, std::move(*where));
  }
  return out;
}

}  // namespace

Ooms Engine::ooms() const { return ooms({}).value_or(Ooms{}); }

Result<Ooms> Engine::ooms(std::string_view filter_text) const {
  const State& s = *state_;
  if (auto filter = s.filter(filter_text); !filter) return std::unexpected(filter.error());
  Ooms out;
  const std::vector<Failed> examined = examined_failures(s);
  for (const auto& oom : s.store.ooms) out.optional_refusals += oom.row.final ? 0u : 1u;
  for (const auto& [failed, where] : examined) {
    const Stamped<trace::Oom>& oom = *failed;
    const OomScene scene = scene_of(s, where, oom);
    OomEvent e = event_of(s, oom, where, scene);
    const OomRequest request = request_of(s, where, oom);
    e.category = name_of(request.category);
    e.layer = request.layer;
    e.line = request.line;
    if (const auto plan = plan_of(s.store, e.op)) e.plan = in_words(s.store, *plan, e.free);
    const Leaks leaking = leaks(where.index).value_or(Leaks{});
    e.causes = {leak_cause(scene, leaking), spike_cause(scene),         fragmentation_cause(scene),
                limit_cause(scene),         other_process_cause(scene), too_big_cause(scene)};
    e.verdict = main_cause(e.causes);
    e.sentence = sentence_of(e, scene, request);
    e.live_set = live_set_of(*this, oom.pos, where.index, filter_text);
    // A leak fills any memory, whatever the batch.
    if (failed == examined.back().first && e.verdict != "leak") e.replay = replay_failure(s, where, oom, scene, request);
    const LiveAtOom live = live_at_oom(s.store, s.pools(where.place), oom.pos);
    out.advice = advice_of(e, scene, request, live, leaking, framework_of(s.store, where.place));  // of the last one
    out.events.push_back(std::move(e));
  }
  out.sentence = out.events.empty() ? "No request failed." : out.events.back().sentence;
  if (out.optional_refusals > 0)
    out.sentence += fmt::format(" ({} earlier were for optional workspaces and had no effect.)",
                                support::format_plural(out.optional_refusals, "refusal", "refusals"));
  return out;
}

}  // namespace vramscope::analyze
