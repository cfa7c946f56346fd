#include "analyze/index/pool_figures.h"

#include <algorithm>
#include <optional>

#include "analyze/framework.h"
#include "analyze/index/tally.h"

namespace vramscope::analyze {
namespace {

PoolSummary seen(const Store& store, std::size_t pool) {
  const trace::Pool& row = store.dictionaries().pools[pool];
  PoolSummary out;
  out.name = store.text(row.name);
  out.device = row.device;
  out.framework = word_of(row.framework);
  out.memory = trace::name_of(row.memory);
  if (pool >= store.pool_tallies.size()) return out;
  const Held& held = store.pool_tallies[pool];
  out.allocs = held.allocs;
  out.frees = held.frees;
  out.peak_bytes = held.peak;
  out.peak_requested_bytes = held.requested_peak;
  out.end_bytes = held.end;
  out.largest_alloc_bytes = held.largest;
  return out;
}

void add_regions(const Store& store, std::vector<PoolSummary>& pools) {
  for (const auto& region : store.regions) {
    const auto pool = static_cast<std::size_t>(region.row.pool);
    if (pool >= pools.size()) continue;
    Bytes& held = pools[pool].region_bytes_end;
    held = region.row.returned ? held - std::min(held, region.row.bytes) : held + region.row.bytes;
    pools[pool].region_bytes_peak = std::max(pools[pool].region_bytes_peak, held);
  }
}

void add_failures(const Store& store, std::vector<PoolSummary>& pools) {
  const auto& sites = store.dictionaries().sites;
  for (const auto& oom : store.ooms) {
    const auto site = static_cast<std::size_t>(oom.row.site);
    const std::size_t pool = site < sites.size() ? static_cast<std::size_t>(sites[site].pool) : pools.size();
    if (pool < pools.size()) ++(oom.row.final ? pools[pool].ooms : pools[pool].refusals);
  }
}

// Adds allocations that were left out on purpose, with their frees.
void add_omitted(const Store& store, PoolFigures& figures) {
  for (const auto& omitted : store.omitted) {
    const auto pool = static_cast<std::size_t>(omitted.row.pool);
    if (pool >= figures.pools.size()) continue;
    PoolSummary& out = figures.pools[pool];
    if (omitted.row.peak > out.peak_bytes) figures.counted[pool] = 1;
    out.allocs += omitted.row.allocs;
    out.frees += omitted.row.allocs;
    out.peak_bytes = std::max(out.peak_bytes, omitted.row.peak);
    out.largest_alloc_bytes = std::max(out.largest_alloc_bytes, omitted.row.largest);
  }
}

// The recorder's totals are correct even if events are missing, but may be older than the last events of a truncated trace.
// Returns true if they replace what the events show.
bool settle_pool(PoolSummary& pool, const trace::Totals& totals, bool chunks_lost) {
  const bool detail_missing = totals.allocs > pool.allocs || totals.frees > pool.frees;
  pool.allocs = std::max(pool.allocs, totals.allocs);
  pool.frees = std::max(pool.frees, totals.frees);
  // If no event is missing, the peak is that of the events: they are in the allocator's order, whereas the recorder's running
  // total is kept outside the allocator's lock in versions that do not report sizes inside it (TensorFlow 2.18).
  if (totals.before > 0) pool.peak_bytes = std::max(pool.peak_bytes, totals.peak);
  // Blocks whose free was lost, or is in an unreadable chunk, look alive: only the running total is correct then.
  if (detail_missing || chunks_lost) pool.peak_bytes = totals.peak;
  pool.largest_alloc_bytes = std::max(pool.largest_alloc_bytes, totals.largest);
  pool.ooms = std::max(pool.ooms, totals.ooms);
  pool.before_bytes = totals.before;
  pool.order_exact = totals.order_exact;
  if (detail_missing || totals.before > 0) pool.end_bytes = totals.live;
  return detail_missing || chunks_lost || totals.before > 0;
}

}  // namespace

PoolFigures pool_figures(const Store& store) {
  const std::size_t pools = store.dictionaries().pools.size();
  PoolFigures out;
  out.counted.resize(pools);
  out.lost_events = store.lost_events();
  for (std::size_t pool = 0; pool < pools; ++pool) out.pools.push_back(seen(store, pool));
  add_regions(store, out.pools);
  add_failures(store, out.pools);
  add_omitted(store, out);
  std::vector<const trace::Totals*> totals(pools, nullptr);  // the newest
  for (const auto& each : store.totals)
    if (const auto pool = static_cast<std::size_t>(each.row.pool); pool < pools) totals[pool] = &each.row;
  // A truncated trace (the disk was full) does not contain its last losses.
  const bool silent = store.reader().damage().truncated && store.lost.empty();
  for (std::size_t pool = 0; pool < pools; ++pool) {
    if (totals[pool] == nullptr) continue;
    const std::uint64_t before = out.pools[pool].allocs + out.pools[pool].frees;
    if (settle_pool(out.pools[pool], *totals[pool], store.counts.lost_chunks > 0)) out.counted[pool] = 1;
    if (silent) out.lost_events += out.pools[pool].allocs + out.pools[pool].frees - before;
  }
  return out;
}

DriverSummary driver_figures(const Store& store, const PoolFigures& figures) {
  const Held& held = store.driver_tally;
  DriverSummary out{.allocs = held.allocs, .frees = held.frees, .peak_bytes = held.peak, .end_bytes = held.end, .by_owner = {}};
  for (const HeldByOwner& owner : store.owner_tallies) {
    const std::string_view name = store.text(static_cast<trace::StringId>(owner.owner));
    out.by_owner.emplace_back(name.empty() ? "unknown" : name, OwnerSummary{owner.held.allocs, owner.held.peak, owner.held.end});
  }
  std::ranges::sort(out.by_owner, {}, [](const auto& owner) { return owner.first; });
  // The common peak of several pools was not counted: if events are missing, it is at most the sum of their peaks.
  PoolSummary sum;
  std::size_t pools = 0;
  for (std::size_t i = 0; i < figures.pools.size(); ++i) {
    const trace::Pool& pool = store.dictionaries().pools[i];
    if (pool.level != trace::Level::driver) continue;
    pools += is_used(figures.pools[i]) ? 1u : 0u;
    if (!is_device_memory(pool.memory)) continue;
    sum.allocs += figures.pools[i].allocs;
    sum.frees += figures.pools[i].frees;
    sum.end_bytes += figures.pools[i].end_bytes;
    sum.peak_bytes += figures.pools[i].peak_bytes;
  }
  if (sum.allocs <= out.allocs && sum.frees <= out.frees) return out;
  out.allocs = sum.allocs;
  out.frees = sum.frees;
  out.end_bytes = sum.end_bytes;
  out.peak_bytes = pools == 1 ? sum.peak_bytes : std::min(out.peak_bytes, sum.peak_bytes);
  return out;
}

bool is_used(const PoolSummary& pool) { return pool.allocs > 0 || pool.region_bytes_peak > 0 || pool.ooms + pool.refusals > 0; }

void settle(Place& place, const PoolFigures& figures) {
  place.peak_known = place.peak;
  Bytes sum = 0, highest = 0, end = 0;
  bool counted = false;
  for (const std::uint32_t pool : place.pools) {
    if (pool >= figures.pools.size()) continue;
    const PoolSummary& each = figures.pools[pool];
    sum += each.peak_bytes;
    highest = std::max(highest, each.peak_bytes);
    end += each.end_bytes;
    counted |= figures.counted[pool] != 0;
  }
  if (!counted) return;
  // The common peak of several pools was not counted, but it lies between these two.
  place.peak = std::clamp(place.peak, highest, sum);
  place.steady_peak = std::min(place.steady_peak, place.peak);
  place.end = end;
}

}  // namespace vramscope::analyze
