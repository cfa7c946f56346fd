#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analyze/attribute/categories.h"
#include "analyze/index/address_map.h"
#include "analyze/index/lifetime.h"
#include "analyze/query/block_text.h"
#include "analyze/query/state.h"

namespace vramscope::analyze {

std::vector<std::uint32_t> live_by_address(const Store& store, const PoolSet& pools, Moment at) {
  std::vector<std::uint32_t> out;
  for_each_live(store, at, [&](std::uint32_t alloc) {
    std::uint32_t pool = store.kind_of(alloc).pool;
    if (pool < pools.size() && pools[pool] != 0) out.push_back(alloc);
  });
  std::ranges::sort(out, [&](std::uint32_t a, std::uint32_t b) {
    return store.address[a] != store.address[b] ? store.address[a] < store.address[b] : a < b;
  });
  return out;
}

Layout layout_at(const Store& store, const Place& place, const PoolSet& pools, Moment at) {
  Layout out;
  out.regions = regions_at(store, place, at);
  std::vector<std::uint32_t> order(out.regions.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return out.regions[i].address; });
  out.live.assign(out.regions.size(), 0);
  out.largest_hole.assign(out.regions.size(), 0);
  std::vector<std::uint32_t> blocks = live_by_address(store, pools, at);
  std::size_t b = 0;
  for (std::uint32_t r : order) {
    const HeldRegion& region = out.regions[r];
    std::uint64_t cursor = region.address, end = region.address + region.bytes, before = kNever;
    auto hole = [&](std::uint64_t to, std::uint64_t after) {
      if (to <= cursor) return;
      out.holes.push_back({region.pool, r, cursor, to - cursor, before, after});
      out.largest_hole[r] = std::max(out.largest_hole[r], to - cursor);
      out.free += to - cursor;
    };
    for (; b < blocks.size() && store.address[blocks[b]] < region.address; ++b) out.outside += store.kind_of(blocks[b]).granted;
    for (; b < blocks.size() && store.address[blocks[b]] < end; ++b) {
      std::uint32_t alloc = blocks[b];
      hole(store.address[alloc], alloc);
      out.blocks.push_back({alloc, r});
      out.live[r] += store.kind_of(alloc).granted;
      cursor = std::max(cursor, store.address[alloc] + store.kind_of(alloc).granted);
      before = alloc;
    }
    hole(end, kNever);
  }
  for (; b < blocks.size(); ++b) out.outside += store.kind_of(blocks[b]).granted;
  return out;
}

Result<AddressMap> Engine::address_map(const MapRequest& request) const {
  const Store& store = state_->store;
  auto at = state_->resolve(request.at, request.place);
  if (!at) return std::unexpected(at.error());
  auto where = state_->place(request.place);
  if (!where) return std::unexpected(where.error());
  auto filter = state_->filter(request.where, *at, request.place);
  if (!filter) return std::unexpected(filter.error());
  Place place = **where;
  if (request.pool >= 0) {
    if (std::ranges::find(place.pools, static_cast<std::uint32_t>(request.pool)) == place.pools.end())
      return fail(fmt::format("pool {} does not belong to {}", request.pool, place.name));
    place.pools = {static_cast<std::uint32_t>(request.pool)};
  }
  Layout layout = layout_at(store, place, state_->pools(place), *at);
  AddressMap out;
  out.at = *at;
  out.time_us = store.time_of(*at);
  out.outside = layout.outside;
  out.free = layout.free;
  out.holes = layout.holes;
  for (std::size_t i = 0; i < layout.regions.size(); ++i) {
    const HeldRegion& r = layout.regions[i];
    out.regions.push_back({r.pool, r.address, r.bytes, layout.live[i], layout.largest_hole[i], r.taken_us, 0, 0});
    out.pool_bytes += r.bytes;
    out.live += layout.live[i];
    out.largest_hole = std::max(out.largest_hole, layout.largest_hole[i]);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> labels;  // layer, op
  for (auto [alloc, region] : layout.blocks) {
    const Kind& kind = store.kind_of(alloc);
    Attributes attributes = store.attributes_of(alloc);
    auto [label, fresh] = labels.try_emplace({attributes.layer(), static_cast<std::uint32_t>(store.site_of(kind).op)},
                                             static_cast<std::uint32_t>(out.labels.size()));
    if (fresh) {
      std::string_view op = store.text(store.site_of(kind).op);
      op = op.substr(op.rfind('/') == std::string_view::npos ? 0 : op.rfind('/') + 1);
      out.labels.push_back(attributes.layer() == 0 ? std::string(op) : fmt::format("{} {}", store.name(attributes.layer()), op));
    }
    out.blocks.push_back({alloc, store.address[alloc], kind.granted, kind.requested, region,
                          static_cast<std::uint8_t>(shown(attributes.category())), !filter->matches(alloc),
                          store.time_of_event(store.birth[alloc]), label->second});
  }
  return out;
}

}  // namespace vramscope::analyze
