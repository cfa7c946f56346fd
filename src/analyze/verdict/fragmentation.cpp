// Free memory that cannot be used: how much, since when, and which block is in the way.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "analyze/index/address_map.h"
#include "analyze/index/lifetime.h"
#include "analyze/query/block_text.h"
#include "analyze/query/state.h"
#include "analyze/verdict/empty_regions.h"
#include "analyze/verdict/headline.h"
#include "analyze/verdict/recent_requests.h"
#include "analyze/verdict/remedies.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

constexpr std::size_t kPins = 10;
constexpr std::size_t kMostGrowths = 40;  // each one sorts the live set by address

FragPoint point_at(const Engine::State& s, const PoolSet& pools, const std::vector<Failure>& failures, Moment at,
                   const Layout& layout) {
  FragPoint p;
  p.at = at;
  p.time_us = s.store.time_of(at);
  p.step = s.step_number(at);
  for (const HeldRegion& r : layout.regions) p.pool += r.bytes;
  for (auto [alloc, region] : layout.blocks) {
    const Kind& kind = s.store.kind_of(alloc);
    p.live += kind.granted;
    p.requested += std::min(kind.requested, kind.granted);
  }
  p.cached = layout.free;
  p.request = largest_recent_request(s.store, pools, failures, at);
  for (const Hole& h : layout.holes) {
    p.largest_free = std::max(p.largest_free, h.bytes);
    if (h.bytes < p.request) p.unusable += h.bytes;
  }
  return p;
}

std::uint64_t live_count(const Store& store, Moment at) {
  std::uint64_t count = 0;
  for_each_live(store, at, [&](std::uint32_t) { ++count; });
  return count;
}

// Where the state is worth a look: peaks, growths, failures, and evenly between.
std::vector<Moment> moments_of(const Engine::State& s, const Place& place, const std::vector<Failure>& failures) {
  const Store& store = s.store;
  // Each look sorts the live set by address.
  std::size_t most = std::clamp<std::size_t>(
      200'000 / std::max<std::uint64_t>(1, place.allocs == 0 ? 1 : live_count(store, place.peak_at)), 8, 64);
  std::set<Moment> out = {place.peak_at, store.events()};
  for (const Failure& f : failures) out.insert(f.at);
  if (place.steady) out.insert(place.steady_peak_at);
  for (const auto& r : store.regions)
    if (out.size() < most / 2) out.insert(r.pos);
  for (const auto& o : store.ooms)
    if (out.size() < most) out.insert(o.pos);
  if (!s.measures.empty()) {
    std::size_t every =
        std::max<std::size_t>(1, s.measures.size() / std::max<std::size_t>(1, most - std::min(most - 1, out.size())));
    for (std::size_t i = 0; i < s.measures.size(); i += every) out.insert(s.measures[i].peak_at);
  } else {
    for (std::uint64_t i = 1; i < most; ++i) out.insert(store.events() * i / most);
  }
  return {out.begin(), out.end()};
}

// Blocks between two holes of one region: with them gone the holes would be one.
std::vector<Pin> pins_of(const Store& store, const Layout& layout, const Filter& filter) {
  std::map<std::uint64_t, std::pair<Bytes, Bytes>> around;  // allocation -> hole before, hole after
  for (const Hole& h : layout.holes) {
    if (h.after != kNever) around[h.after].first = h.bytes;
    if (h.before != kNever) around[h.before].second = h.bytes;
  }
  std::vector<std::pair<Bytes, std::uint64_t>> order;
  for (auto& [alloc, holes] : around)
    if (holes.first > 0 && holes.second > 0 && filter.matches(alloc)) order.emplace_back(holes.first + holes.second, alloc);
  std::ranges::sort(order,
                    [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  if (order.size() > kPins) order.resize(kPins);
  std::vector<Pin> out;
  for (auto [bytes, alloc] : order) out.push_back({block_of(store, alloc), bytes, bytes + store.kind_of(alloc).granted});
  return out;
}

std::string pin_advice(const std::vector<Pin>& pins) {
  if (pins.empty()) return {};
  return fmt::format("free {} earlier, or allocate it earlier: it keeps {} apart", pins[0].block.op, format_size(pins[0].frees));
}

// Growths of the pool although enough was free. One that the run's own peak needed later does not count: without holes,
// the pool would have grown then.
std::vector<Grown> growths(const Engine::State& s, const Place& place, const PoolSet& pools) {
  const Store& store = s.store;
  std::vector<Grown> out;
  std::size_t examined = 0;
  Bytes held = 0;
  for (const auto& r : store.regions) {
    auto pool = static_cast<std::uint32_t>(r.row.pool);
    if (pool >= pools.size() || pools[pool] == 0) continue;
    const Bytes held_before = held;
    held = r.row.returned ? held - std::min(held, r.row.bytes) : held + r.row.bytes;
    const bool needed_anyway = place.peak_at > r.pos && place.peak > held_before;
    if (r.row.returned || needed_anyway || ++examined > kMostGrowths) continue;
    Place one = place;
    one.pools = {pool};
    Layout before = layout_at(store, one, s.pools(one), r.pos);
    Bytes regions = 0;
    for (const HeldRegion& each : before.regions) regions += each.bytes;
    if (before.free == 0 || is_nearly_empty(regions - before.free, regions)) continue;
    for (std::uint64_t pos = r.pos + 1; pos < std::min<std::uint64_t>(store.events(), r.pos + 256); ++pos) {
      std::uint32_t ref = store.ref[pos];
      if (ref == kNone32 || (ref & 1) != 0 || store.address[ref >> 1] - r.row.address >= r.row.bytes) continue;
      const Kind& kind = store.kind_of(ref >> 1);
      Bytes largest = 0;
      for (const Hole& h : before.holes) largest = std::max(largest, h.bytes);
      if (before.free >= kind.requested && largest < kind.requested) {
        Block block = block_of(store, ref >> 1);
        out.push_back({pos, store.time_of(pos), s.step_number(pos), kind.requested, before.free, largest, r.row.bytes,
                       before.holes.size(), block.op, block.layer});
      }
      break;
    }
  }
  return out;
}

// Sentence and advice: a request that failed, else a growth. Holes that no request met have cost nothing.
void conclude(Fragmentation& out, const Engine::State& s, const Place& place, const std::vector<Failure>& failures) {
  if (!failures.empty()) {
    const Failure& f = *std::ranges::max_element(failures, {}, &Failure::free);
    out.sentence = fmt::format("{} was free, yet a request for {} failed at {}: the largest piece was {}.", format_size(f.free),
                               format_size(f.requested), support::format_duration(f.time_us), format_size(f.largest_piece));
    out.advice = pin_advice(out.pins);
  } else if (!out.grown.empty()) {
    const Grown& g = *std::ranges::max_element(out.grown, {}, &Grown::grew_by);
    out.sentence =
        fmt::format("{} was free, yet a request for {} did not fit: the largest of {} holes was {}. The pool grew by {}.",
                    format_size(g.free), format_size(g.request), g.holes, format_size(g.largest_hole), format_size(g.grew_by));
    out.advice = remedy_for(Remedy::avoid_fragmentation, framework_of(s.store, place));
  } else {
    out.sentence = "Fragmentation cost nothing: holes neither stopped a request nor made the pool grow.";
  }
  Bytes empty = 0;
  for (const Region& r : out.empty) empty += r.bytes;
  if (is_useful(empty, place.peak) && out.advice.empty()) {
    std::string since = out.empty[0].empty_since_step > 0 ? fmt::format(" since step {}", out.empty[0].empty_since_step) : "";
    out.advice = fmt::format("{} of the pool has been empty{}: limit the request that needed it to keep the pool smaller",
                             format_size(empty), since);
  }
}

}  // namespace

Result<Fragmentation> Engine::fragmentation(int place_index, std::string_view where) const {
  const State& s = *state_;
  const Store& store = s.store;
  auto found = s.place(place_index);
  if (!found) return std::unexpected(found.error());
  const Place& place = **found;
  auto filter = s.filter(where, kNever, place_index);
  if (!filter) return std::unexpected(filter.error());
  PoolSet pools = s.pools(place);
  Fragmentation out;
  if (place.regions_peak == 0) {
    out.sentence = fmt::format("Fragmentation on {} is unknown: no pool regions were recorded.", place.name);
    return out;
  }
  std::vector<Failure> failures = fragmented_failures(s, place);
  for (Moment at : moments_of(s, place, failures)) {
    Layout layout = layout_at(store, place, pools, at);
    FragPoint p = point_at(s, pools, failures, at, layout);
    if (p.pool == 0) continue;
    out.points.push_back(p);
    if (p.live * 2 < place.peak) continue;  // a pool that is nearly empty has holes that nobody needs
    if (out.worst.pool == 0 || p.unusable > out.worst.unusable || (p.unusable == out.worst.unusable && p.live > out.worst.live))
      out.worst = p;
  }
  Layout worst = layout_at(store, place, pools, out.worst.at);
  out.slack = out.worst.live - out.worst.requested;
  for (auto [alloc, region] : worst.blocks) {
    const Kind& kind = store.kind_of(alloc);
    out.rounding += std::min<Bytes>((256 - kind.requested % 256) % 256, kind.granted - std::min(kind.requested, kind.granted));
  }
  out.pins = pins_of(store, worst, *filter);
  out.grown = growths(s, place, pools);
  out.empty = empty_regions(s, place);
  conclude(out, s, place, failures);
  return out;
}

}  // namespace vramscope::analyze
