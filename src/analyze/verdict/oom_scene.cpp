#include "analyze/verdict/oom_scene.h"

#include <algorithm>
#include <cstdlib>

#include "analyze/attribute/categories.h"
#include "analyze/framework.h"
#include "analyze/index/address_map.h"
#include "analyze/query/device_at.h"
#include "analyze/query/driver_level.h"
#include "analyze/verdict/autotune.h"
#include "analyze/verdict/oom_request.h"
#include "whatif/replay/bfc.h"

namespace vramscope::analyze {
namespace {

constexpr Bytes kLargestRegion = Bytes{1} << 60;
constexpr Bytes kEndless = ~Bytes{0};

Bytes round_up(Bytes bytes, Bytes unit) { return (bytes + unit - 1) / unit * unit; }

// What a pool takes from the level below, at least, for a request that no hole serves.
Bytes smallest_region(const Framework& framework, Bytes requested) {
  return framework.smallest_region != nullptr ? framework.smallest_region(requested) : round_up(requested, 256);
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

// The request that a region was taken for: the first that it served.
Bytes first_request(const Store& store, const HeldRegion& region) {
  auto first = static_cast<std::size_t>(std::ranges::lower_bound(store.birth, region.taken) - store.birth.begin());
  for (std::size_t a = first; a < std::min<std::size_t>(store.allocs(), first + 256); ++a)
    if (store.address[a] - region.address < region.bytes) return store.kind_of(a).requested;
  return 0;
}

// How much of the region taken last the limit cut off. Regions double from 2 MiB on, a large request doubles them
// sooner, and the last one gets what the limit leaves. Without growth one region takes all of the limit, whatever is asked for.
Bytes cut_off(const Store& store, const std::vector<HeldRegion>& regions) {
  Bytes next = whatif::kBfcFirstRegion, cut = 0;
  for (const HeldRegion& r : regions) {
    // With several regions there is growth, and one that is larger than the next size was doubled for a request.
    Bytes least = std::min(regions.size() == 1 ? first_request(store, r) : r.bytes, kLargestRegion);
    bool for_request = least > next;
    while (next < least) next *= 2;
    if (next < r.bytes) return kEndless;
    cut = next - r.bytes;
    if (!for_request) next *= 2;
  }
  return cut;
}

// How much the region taken last must grow to serve a request with what is free at its end. A block at the end that was given all
// that was left keeps all of it, until that is twice what it needs.
Bytes stretch_of(const Store& store, const Layout& layout, Bytes need) {
  const std::size_t last = layout.regions.size() - 1;
  for (const Hole& h : layout.holes)
    if (h.region == last && h.after == kNever) return need - std::min(need, h.bytes);
  for (auto [alloc, region] : layout.blocks) {
    const HeldRegion& r = layout.regions[last];
    const Kind& kind = store.kind_of(alloc);
    if (region != last || store.address[alloc] + kind.granted < r.address + r.bytes) continue;
    Bytes own = std::min(round_up(kind.requested, whatif::kBfcQuantum), kind.granted);
    return std::max(std::min(2 * own, own + whatif::kBfcMostSlack), own + need) - std::min(kind.granted, own + need);
  }
  return need;
}

// What the driver level says of a pool whose regions are not recorded.
Bytes held_by_driver(const Engine::State& s, const FailedPool& where, Moment at) {
  const trace::Framework id = s.store.dictionaries().pools[where.pool].framework;
  if (where.place.device < 0 || framework(id).pool_owner.empty()) return 0;
  const DriverLevel driver = driver_level(s, where.place.device, {}, at);
  const auto held = driver.owners.find(std::string(framework(id).pool_owner));
  return held != driver.owners.end() ? held->second : 0;
}

}  // namespace

Bytes OomScene::raise() const {
  if (largest_piece() >= need) return 0;
  // A region that the limit cut grows with the limit, up to its full size; only what is beyond makes a region of its own.
  if (cut > 0 && stretch <= cut) return stretch;
  return cut + need - std::min(need, limit - std::min(limit, regions));
}

std::optional<FailedPool> failed_pool(const Engine::State& s, const trace::Oom& oom) {
  auto site = static_cast<std::size_t>(oom.site);
  if (site >= s.store.dictionaries().sites.size()) return std::nullopt;
  auto pool = static_cast<std::uint32_t>(s.store.dictionaries().sites[site].pool);
  auto where = std::ranges::find_if(s.places, [&](const Place& p) { return std::ranges::find(p.pools, pool) != p.pools.end(); });
  if (where == s.places.end()) return std::nullopt;
  FailedPool out{*where, static_cast<int>(where - s.places.begin()), pool};
  out.place.pools = {pool};
  return out;
}

OomScene scene_of(const Engine::State& s, const FailedPool& where, const Stamped<trace::Oom>& o) {
  const Store& store = s.store;
  const trace::Site& site = store.dictionaries().sites[static_cast<std::size_t>(o.row.site)];
  const trace::Pool& pool = store.dictionaries().pools[where.pool];
  PoolSet pools = s.pools(where.place);
  Layout layout = layout_at(store, where.place, pools, o.pos);
  OomScene m;
  m.requested = site.requested;
  m.need = smallest_region(framework(pool.framework), m.requested);
  for (auto [alloc, region] : layout.blocks) m.live += store.kind_of(alloc).granted;
  m.live += layout.outside;
  if (o.row.live != trace::kNone && o.row.live > m.live) m.live = o.row.live;  // blocks from before the recording
  for (const HeldRegion& r : layout.regions) {
    m.regions += r.bytes;
    m.largest_region = std::max(m.largest_region, r.bytes);
  }
  // An importer writes 0 for what its source does not contain.
  m.regions_known = !layout.regions.empty() || (o.row.regions != trace::kNone && o.row.regions > 0);
  if (layout.regions.empty()) {
    const Bytes held = held_by_driver(s, where, o.pos);
    m.regions_known |= held > 0;
    m.regions = std::max(m.live, held);
  }
  bool all_seen = o.row.regions == trace::kNone || o.row.regions <= m.regions;
  if (!all_seen) m.regions = o.row.regions;
  m.limit = o.row.limit == trace::kNone ? 0 : o.row.limit;
  if (m.limit == 0) m.limit = where.place.limit;
  for (const Hole& h : layout.holes) m.largest_hole = std::max(m.largest_hole, h.bytes);
  if (layout.regions.empty() && o.row.largest_free != trace::kNone) m.largest_hole = o.row.largest_free;
  if (all_seen && !layout.regions.empty() && framework(pool.framework).regions_double &&
      m.limit - m.regions < whatif::kBfcQuantum) {
    m.cut = cut_off(store, layout.regions);
    m.stretch = stretch_of(store, layout, m.need);
  }
  m.scratch = autotune_share(store, pools, o.pos);
  m.hole_without_scratch = largest_hole_without(store, layout, [&](std::uint32_t alloc) { return is_scratch(store, alloc); });
  const Shown wanted = request_of(s, where, o).category;
  m.request_is_scratch = wanted == Shown::xla_temporaries || is_scratch(store.text(site.op), wanted, framework(pool.framework));
  m.on_host = where.place.device < 0;
  if (m.on_host) {  // host memory: what the machine, or the container, has; others' share of it is not known
    m.card = std::strtoull(setting(store, "host.memory_bytes").c_str(), nullptr, 10);
    for (const auto& h : store.host_samples)
      if (h.time_us <= o.time_us + 2'000'000) m.outside = h.row.rss - std::min(h.row.rss, m.live);
  }
  if (const auto card = device_at(s, where.place.device, o.pos)) {
    m.card = card->total;
    m.others = card->others;
    const Bytes mine = card->process.value_or(card->used);
    m.outside = mine - std::min(mine, m.regions);
  }
  return m;
}

}  // namespace vramscope::analyze
