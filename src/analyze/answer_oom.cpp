// Why a request failed: every cause is tested by arithmetic on the recorded state, and says whether the request would have
// fitted without it.
#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "analyze/address_map.h"
#include "analyze/autotune.h"
#include "analyze/categories.h"
#include "analyze/facts.h"
#include "analyze/op_names.h"
#include "analyze/state.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

// The recorded state at a failure.
struct Scene {
  Bytes requested = 0, live = 0, regions = 0, limit = 0, largest_hole = 0;
  Bytes scratch = 0;               // workspaces and temporaries that are live
  Bytes hole_without_scratch = 0;  // largest, if all of that were gone
  bool request_is_scratch = false;
  Bytes card = 0, others = 0;  // 0 = not recorded; for a host pool the machine's memory
  Bytes outside = 0;           // of the card: context, direct allocations of this process
  bool on_host = false;
  const char* where() const { return on_host ? "machine" : "card"; }

  // Of the card, what this pool could have: all but what others and the rest of this process hold.
  Bytes mine() const { return card - std::min(card, outside + others); }
  // The most that the pool could come to hold; where neither limit nor card is known, what it holds.
  Bytes reach() const {
    Bytes most = card == 0 ? limit : limit == 0 ? mine() : std::min(limit, mine());
    return std::max(regions, most);
  }
  Bytes room() const { return reach() - regions; }  // that it may still take in one piece
};

std::string fits(Bytes live, Bytes requested, Bytes capacity) {
  return capacity == 0 ? "unknown" : live + requested <= capacity ? "yes" : "no";
}

OomCause fragmentation_cause(const Scene& m) {
  OomCause out{"fragmentation", false, "unknown", 0, {}};
  Bytes capacity = m.reach();
  Bytes free = capacity - std::min(capacity, m.live);
  Bytes room = m.room();
  out.holds = free >= m.requested && m.largest_hole < m.requested && room < m.requested;
  out.would_fit = fits(m.live, m.requested, capacity);
  out.bytes = out.holds ? m.requested - std::max(m.largest_hole, room) : 0;
  out.evidence = fmt::format("{} were free within {}, the largest piece was {}", format_size(free), format_size(capacity),
                             format_size(std::max(m.largest_hole, room)));
  return out;
}

OomCause limit_cause(const Scene& m) {
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

OomCause other_process_cause(const Scene& m) {
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

OomCause leak_cause(const Scene& m, const Leaks& leaks) {
  OomCause out{"leak", leaks.verdict == "growing", "unknown", leaks.so_far, {}};
  Bytes capacity = m.reach();
  if (out.holds) {
    out.would_fit = fits(m.live - std::min(m.live, leaks.so_far), m.requested, capacity);
    out.evidence = fmt::format("{} a step since step {}, {} so far", format_size(static_cast<Bytes>(leaks.bytes_per_step)),
                               leaks.since_step, format_size(leaks.so_far));
  } else {
    out.would_fit = leaks.verdict == "not growing" ? "no" : "unknown";
    out.evidence = leaks.verdict == "not growing" ? "nothing grew from step to step" : leaks.why;
  }
  return out;
}

// The largest hole there would be without the blocks that `gone` names.
template <typename Gone>
Bytes largest_hole_without(const Store& store, const Layout& layout, Gone&& gone) {
  Bytes largest = 0;
  std::size_t b = 0;
  while (b < layout.blocks.size()) {
    std::uint32_t r = layout.blocks[b].second;
    std::uint64_t cursor = layout.regions[r].address, end = cursor + layout.regions[r].bytes;
    for (; b < layout.blocks.size() && layout.blocks[b].second == r; ++b) {
      std::uint32_t alloc = layout.blocks[b].first;
      if (gone(alloc)) continue;
      largest = std::max(largest, store.address[alloc] - std::min(cursor, store.address[alloc]));
      cursor = std::max(cursor, store.address[alloc] + store.kind_of(alloc).granted);
    }
    largest = std::max(largest, end - std::min(cursor, end));
  }
  for (const Hole& h : layout.holes) largest = std::max(largest, h.bytes);  // regions without any block
  return largest;
}

OomCause spike_cause(const Scene& m) {
  OomCause out{"spike", false, "unknown", m.scratch + (m.request_is_scratch ? m.requested : 0), {}};
  Bytes capacity = m.reach();
  Bytes room = m.room();
  out.would_fit = m.request_is_scratch                                    ? "yes"
                  : m.scratch == 0                                        ? "no"
                  : std::max(m.hole_without_scratch, room) >= m.requested ? "yes"
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

OomCause too_big_cause(const Scene& m) {
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

std::string sentence_of(const OomEvent& e, const Scene& m) {
  std::string when = e.step > 0 ? fmt::format(" in step {}", e.step) : fmt::format(" at {}", support::format_duration(e.time_us));
  Bytes capacity = m.reach();
  std::string free = fmt::format("{} of the {} {} were free", format_size(capacity - std::min(capacity, m.live)),
                                 format_size(capacity), capacity == m.limit ? "limit" : "that the pool could take");
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
  else if (e.verdict == "too big")
    what = fmt::format("Too big, not fragmented: {} less must be live to get past this point.", format_size(e.short_by));
  else
    what = "The recorded state does not tell the cause.";
  return fmt::format("Out of memory{}: {} were asked for, {}. {}", when, format_size(e.requested), free, what);
}

}  // namespace

Ooms Engine::ooms() const { return ooms({}).value_or(Ooms{}); }

Result<Ooms> Engine::ooms(std::string_view filter_text) const {
  const State& s = *state_;
  if (auto filter = s.filter(filter_text); !filter) return std::unexpected(filter.error());
  const Store& store = s.store;
  Ooms out;
  for (const auto& o : store.ooms) {
    if (!o.row.final) {
      out.optional_refusals += 1;
      continue;
    }
    if (out.events.size() >= 20) continue;  // a program that retries in a loop fails the same way each time
    auto site_index = static_cast<std::size_t>(o.row.site);
    if (site_index >= store.words().sites.size()) continue;
    const trace::Site& site = store.words().sites[site_index];
    auto pool = static_cast<std::uint32_t>(site.pool);
    auto where =
        std::ranges::find_if(s.places, [&](const Place& p) { return std::ranges::find(p.pools, pool) != p.pools.end(); });
    if (where == s.places.end()) continue;
    Place place = *where;
    auto place_index = static_cast<int>(where - s.places.begin());
    place.pools = {pool};
    PoolSet pools = s.pools(place);
    OomEvent e;
    e.at = o.pos;
    e.time_us = o.time_us;
    e.step = s.step_number(o.pos + 1);
    e.final = true;
    e.requested = site.requested;
    e.op = store.text(site.op);
    e.pool = store.text(store.words().pools[pool].name);
    OpMeaning meaning = meaning_of(e.op, store.text(site.region), store.words().pools[pool].framework);
    e.layer = meaning.layer;
    Layout layout = layout_at(store, place, pools, o.pos);
    Scene m;
    m.requested = e.requested;
    for (auto [alloc, region] : layout.blocks) m.live += store.kind_of(alloc).granted;
    m.live += layout.outside;
    if (o.row.live != trace::kNone && o.row.live > m.live) m.live = o.row.live;  // blocks from before the recording
    for (const HeldRegion& r : layout.regions) m.regions += r.bytes;
    m.regions = std::max(m.regions, o.row.regions == trace::kNone ? 0 : o.row.regions);
    m.limit = o.row.limit == trace::kNone ? 0 : o.row.limit;
    if (m.limit == 0) m.limit = place.limit;
    for (const Hole& h : layout.holes) m.largest_hole = std::max(m.largest_hole, h.bytes);
    if (layout.regions.empty() && o.row.largest_free != trace::kNone) m.largest_hole = o.row.largest_free;
    m.scratch = autotune_share(store, pools, o.pos);
    m.hole_without_scratch = largest_hole_without(store, layout, [&](std::uint32_t alloc) { return is_scratch(store, alloc); });
    m.request_is_scratch = shown(meaning.category) == Shown::temporaries || shown(meaning.category) == Shown::xla_temporaries;
    m.on_host = place.device < 0;
    if (m.on_host) {  // host memory: what the machine, or the container, has; others' share of it is not known
      m.card = std::strtoull(setting(store, "host.memory_bytes").c_str(), nullptr, 10);
      for (const auto& h : store.host_samples)
        if (h.time_us <= o.time_us + 2'000'000) m.outside = h.row.rss - std::min(h.row.rss, m.live);
    }
    for (const auto& d : store.device_samples) {
      if (d.row.device != place.device || d.time_us > o.time_us + 2'000'000) continue;
      m.card = d.row.total;
      bool known = d.row.process != trace::kNone;
      m.others = known ? d.row.others : 0;
      Bytes mine = known ? d.row.process : d.row.used;
      m.outside = mine - std::min(mine, m.regions);
    }
    e.live = m.live;
    e.regions = m.regions;
    e.limit = m.limit;
    Bytes capacity = m.reach();
    e.free = capacity - std::min(capacity, m.live);
    e.largest_free = std::max(m.largest_hole, m.room());
    Leaks leaking;
    if (auto l = leaks(place_index)) leaking = std::move(*l);
    e.causes = {leak_cause(m, leaking), spike_cause(m),         fragmentation_cause(m),
                limit_cause(m),         other_process_cause(m), too_big_cause(m)};
    e.verdict = main_cause(e.causes);
    Bytes missing = m.live + m.requested;
    e.short_by = missing > capacity ? missing - capacity : e.requested - std::min(e.requested, e.largest_free);
    e.sentence = sentence_of(e, m);
    LiveRequest live_request;
    live_request.at = fmt::format("moment:{}", o.pos);
    live_request.by = {By::category, By::layer, By::op};
    live_request.place = place_index;
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
    out.advice = fmt::format("raise the limit by {}", format_size(last.short_by));
  else if (last.verdict == "other process")
    out.advice = "end the other process or use another card";
  else if (last.verdict == "too big")
    out.advice = fmt::format("a smaller batch, mixed precision or checkpointing must save {}", format_size(last.short_by));
  return out;
}

}  // namespace vramscope::analyze
