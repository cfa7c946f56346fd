#include "analyze/driver_level.h"

#include <algorithm>
#include <unordered_set>

#include "analyze/lifetime.h"

namespace vramscope::analyze {
namespace {

constexpr Bytes kSlab = Bytes{2} << 20;
constexpr std::uint64_t kImported = 4;  // Site::flags

Bytes round_up(Bytes bytes) { return (bytes + kSlab - 1) / kSlab * kSlab; }

// What linear memory takes: measured on an H200. A slab is as large as its alignment, so that addresses tell who shares one.
class Rounding {
 public:
  void add(std::uint64_t address, Bytes bytes) {
    asked_ += bytes;
    if (bytes >= kSlab)
      taken_ += round_up(bytes);
    else
      slabs_.insert(address / kSlab);
  }
  Bytes bytes() const { return taken_ + slabs_.size() * kSlab - asked_; }

 private:
  Bytes asked_ = 0, taken_ = 0;
  std::unordered_set<std::uint64_t> slabs_;
};

std::string owner_of(const Store& store, const Kind& kind) {
  std::string_view owner = store.text(store.site_of(kind).owner);
  owner = owner.substr(owner.rfind('/') == std::string_view::npos ? 0 : owner.rfind('/') + 1);
  return owner.empty() ? "unknown owner" : std::string(owner);
}

}  // namespace

DriverLevel driver_level(const Engine::State& state, std::int64_t device, const std::vector<HeldRegion>& regions, Moment at) {
  const Store& store = state.store;
  DriverLevel out;
  Rounding rounding;
  std::unordered_set<std::uint64_t> region_addresses;
  for (const HeldRegion& region : regions) region_addresses.insert(region.address);
  for (const Place& place : state.places) {
    if (!place.driver || place.device != device || place.name.ends_with("addresses")) continue;
    out.recorded = true;
    const PoolSet pools = state.pools(place);
    // Pools of the stream-ordered allocator hold what the driver reserved for them.
    std::map<std::uint32_t, Bytes> reserved;
    for (const HeldRegion& held : regions_at(store, place, at)) reserved[held.pool] += held.bytes;
    for_each_live(store, at, [&](std::uint32_t alloc) {
      const Kind& kind = store.kind_of(alloc);
      if (kind.pool >= pools.size() || pools[kind.pool] == 0 || (store.site_of(kind).flags & kImported) != 0) return;
      if (store.words().pools[kind.pool].memory == trace::Memory::managed) {
        out.managed += kind.granted;
        return;
      }
      const auto pool = reserved.find(kind.pool);
      if (pool != reserved.end())
        pool->second -= std::min(pool->second, kind.granted);
      else if (store.words().pools[kind.pool].memory == trace::Memory::device)
        rounding.add(store.address[alloc], kind.granted);
      out.total += kind.granted;
      if (region_addresses.contains(store.address[alloc]))
        out.regions += kind.granted;
      else
        out.owners[owner_of(store, kind)] += kind.granted;
    });
    for (const auto& [pool, bytes] : reserved) out.cached += bytes;
  }
  out.total += out.cached;
  out.rounding = rounding.bytes();
  return out;
}

}  // namespace vramscope::analyze
