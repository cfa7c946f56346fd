#include "analyze/empty_regions.h"

#include <algorithm>

#include "analyze/address_map.h"
#include "analyze/parallel.h"

namespace vramscope::analyze {

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
  // When the last block left each of them: one pass over the addresses, in pieces.
  constexpr std::size_t kPiece = 1u << 20;
  std::size_t pieces = (store.allocs() + kPiece - 1) / kPiece;
  std::vector<std::vector<std::uint64_t>> last(pieces, std::vector<std::uint64_t>(out.size(), 0));
  parallel(s.threads, pieces, [&](std::size_t piece, unsigned) {
    for (std::size_t a = piece * kPiece; a < std::min<std::size_t>(store.allocs(), (piece + 1) * kPiece); ++a) {
      if (store.death[a] == kNone32) continue;
      for (std::size_t r = 0; r < out.size(); ++r)
        if (store.address[a] - out[r].address < out[r].bytes)
          last[piece][r] = std::max<std::uint64_t>(last[piece][r], std::uint64_t{store.death[a]} + 1);
    }
  });
  for (std::size_t r = 0; r < out.size(); ++r) {
    std::uint64_t left = 0;
    for (const auto& piece : last) left = std::max(left, piece[r]);
    if (left == 0) continue;
    out[r].empty_since_us = store.time_of(left);
    out[r].empty_since_step = s.step_number(left);
  }
  // Between two steps most of a pool is empty. Only what was not used in the whole last step stands idle.
  Moment used_from = s.steady.has ? store.steps[s.steady.last].begin : store.events() / 2;
  std::uint64_t used_from_us = store.time_of(used_from);
  std::erase_if(out, [&](const Region& r) { return r.empty_since_us >= used_from_us; });
  std::ranges::stable_sort(out, [](const Region& a, const Region& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace vramscope::analyze
