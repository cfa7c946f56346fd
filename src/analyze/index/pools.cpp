#include "analyze/index/pools.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "analyze/framework.h"

namespace vramscope::analyze {
namespace {

bool holds(const Place& place, std::uint64_t pool) { return std::ranges::find(place.pools, pool) != place.pools.end(); }

using RegionKey = std::pair<std::uint32_t, std::uint64_t>;  // pool, address

}  // namespace

std::vector<HeldRegion> regions_at(const Store& store, const Place& place, Moment at) {
  std::vector<HeldRegion> all;
  std::map<RegionKey, std::vector<std::size_t>> held;  // in `all`
  for (const auto& r : store.regions) {
    if (r.pos >= at) break;
    auto pool = static_cast<std::uint32_t>(r.row.pool);
    if (!holds(place, pool)) continue;
    if (!r.row.returned) {
      held[{pool, r.row.address}].push_back(all.size());
      all.push_back({pool, r.row.address, r.row.bytes, r.pos + 1, r.time_us});
    } else {
      held.erase({pool, r.row.address});
    }
  }
  std::vector<std::size_t> left;
  for (const auto& [key, places] : held) left.insert(left.end(), places.begin(), places.end());
  std::ranges::sort(left);
  std::vector<HeldRegion> out;
  for (const std::size_t i : left) out.push_back(all[i]);
  return out;
}

RegionLevels region_levels(const Store& store, const Place& place) {
  RegionLevels out;
  std::map<RegionKey, Bytes> held;
  Bytes now = 0;
  for (const auto& r : store.regions) {
    auto pool = static_cast<std::uint32_t>(r.row.pool);
    if (!holds(place, pool)) continue;
    const auto [entry, fresh] = held.try_emplace({pool, r.row.address}, 0);
    now += r.row.returned ? Bytes{0} - entry->second : r.row.bytes;
    entry->second += r.row.bytes;
    if (r.row.returned) held.erase(entry);
    out.push_back({r.pos + 1, now});
  }
  return out;
}

Bytes level_at(const RegionLevels& levels, Moment at) {
  const auto after = std::ranges::upper_bound(levels, at, {}, &RegionLevel::from);
  return after == levels.begin() ? 0 : std::prev(after)->bytes;
}

void measure_pools(const Store& store, Place& place) {
  Bytes now = 0;
  for (const auto& r : store.regions) {
    if (!holds(place, static_cast<std::uint64_t>(r.row.pool))) continue;
    now = r.row.returned ? now - std::min(now, r.row.bytes) : now + r.row.bytes;
    place.regions_peak = std::max(place.regions_peak, now);
  }
  place.regions_end = now;
  std::map<std::uint64_t, Bytes> limit;
  for (const auto& s : store.stats)
    if (holds(place, static_cast<std::uint64_t>(s.row.pool)) && s.row.limit != 0)
      limit[static_cast<std::uint64_t>(s.row.pool)] = s.row.limit;
  for (const auto& o : store.ooms) {
    auto site = static_cast<std::size_t>(o.row.site);
    if (site >= store.dictionaries().sites.size() || o.row.limit == 0) continue;
    auto pool = static_cast<std::uint64_t>(store.dictionaries().sites[site].pool);
    if (holds(place, pool)) limit[pool] = o.row.limit;
  }
  for (const trace::Report& report : store.reports) {
    const auto* const limited = std::get_if<trace::PoolLimit>(&report);
    if (limited == nullptr || place.device < 0 || limited->device != static_cast<std::uint64_t>(place.device)) continue;
    for (const std::uint32_t pool : place.pools)
      if (framework(store.dictionaries().pools[pool].framework).reports_limit) limit[pool] = limited->bytes;
  }
  for (auto [pool, bytes] : limit) place.limit += bytes;
  std::map<std::uint64_t, bool> order_exact;  // the last totals of a pool are the most complete
  for (const auto& t : store.totals)
    if (holds(place, static_cast<std::uint64_t>(t.row.pool)))
      order_exact[static_cast<std::uint64_t>(t.row.pool)] = t.row.order_exact;
  for (auto [pool, exact] : order_exact) place.order_exact &= exact;
}

}  // namespace vramscope::analyze
