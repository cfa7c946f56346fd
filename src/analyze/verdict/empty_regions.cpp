#include "analyze/verdict/empty_regions.h"

#include <algorithm>
#include <map>

#include "analyze/index/address_map.h"
#include "analyze/index/parallel.h"

namespace vramscope::analyze {

std::vector<RegionUse> region_use(const Store& store, unsigned threads) {
  std::map<std::uint64_t, Bytes> held;  // address -> bytes; regions held at the same time do not overlap
  for (const auto& r : store.regions)
    if (r.row.returned)
      held.erase(r.row.address);
    else
      held[r.row.address] = r.row.bytes;
  std::vector<RegionUse> out;
  std::vector<Bytes> bytes;
  for (auto [address, size] : held) {
    out.push_back({address, 0});
    bytes.push_back(size);
  }
  if (out.empty()) return out;
  constexpr std::size_t kPiece = 1u << 20;
  std::size_t pieces = (store.allocs() + kPiece - 1) / kPiece;
  std::vector<std::vector<std::uint64_t>> left(pieces, std::vector<std::uint64_t>(out.size(), 0));
  parallel(threads, pieces, [&](std::size_t piece, unsigned) {
    std::size_t last = 0;  // neighbors are mostly in one region
    for (std::size_t a = piece * kPiece; a < std::min<std::size_t>(store.allocs(), (piece + 1) * kPiece); ++a) {
      if (store.death[a] == kNone32) continue;
      std::uint64_t address = store.address[a];
      if (address - out[last].address >= bytes[last]) {
        auto next = std::ranges::upper_bound(out, address, {}, &RegionUse::address);
        if (next == out.begin()) continue;
        last = static_cast<std::size_t>(next - out.begin()) - 1;
        if (address - out[last].address >= bytes[last]) continue;
      }
      left[piece][last] = std::max<std::uint64_t>(left[piece][last], std::uint64_t{store.death[a]} + 1);
    }
  });
  for (const auto& piece : left)
    for (std::size_t r = 0; r < out.size(); ++r) out[r].left = std::max(out[r].left, piece[r]);
  return out;
}

std::vector<Region> empty_regions(const Engine::State& s, const Place& place) {
  const Store& store = s.store;
  PoolSet pools = s.pools(place);
  Layout layout = layout_at(store, place, pools, store.events());
  std::vector<Region> out;
  for (std::size_t i = 0; i < layout.regions.size(); ++i)
    if (layout.live[i] == 0) {
      const HeldRegion& r = layout.regions[i];
      out.push_back({r.pool, r.address, r.bytes, 0, r.bytes, r.taken_us, r.taken_us, s.step_number(r.taken)});
    }
  if (out.empty()) return out;
  for (Region& r : out) {
    auto use = std::ranges::lower_bound(store.region_use, r.address, {}, &RegionUse::address);
    if (use == store.region_use.end() || use->address != r.address || use->left == 0) continue;
    r.empty_since_us = store.time_of(use->left);
    r.empty_since_step = s.step_number(use->left);
  }
  // Between two steps, most of a pool is empty. Only what was not used during the whole last step is idle.
  Moment used_from = s.steady.has ? store.steps[s.steady.last].begin : store.events() / 2;
  std::uint64_t used_from_us = store.time_of(used_from);
  std::erase_if(out, [&](const Region& r) { return r.empty_since_us >= used_from_us; });
  std::ranges::stable_sort(out, [](const Region& a, const Region& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace vramscope::analyze
