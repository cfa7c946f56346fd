#include "analyze/query/driver_level.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "analyze/framework.h"
#include "analyze/index/lifetime.h"
#include "support/secret_hash.h"
#include "trace/gen/site_flags.h"
#include "whatif/replay/uncached.h"

namespace vramscope::analyze {
namespace {

using whatif::kDriverSlab;

Bytes round_up(Bytes bytes) { return (bytes + kDriverSlab - 1) / kDriverSlab * kDriverSlab; }

// What linear memory really takes, as measured on an H200. Slabs are aligned to their size, so the addresses of two blocks show
// whether they share one.
class Rounding {
 public:
  void add(std::uint64_t address, Bytes bytes) {
    asked_ += bytes;
    if (bytes >= kDriverSlab)
      taken_ += round_up(bytes);
    else
      slabs_.insert(address / kDriverSlab);
  }
  Bytes bytes() const { return taken_ + slabs_.size() * kDriverSlab - asked_; }

 private:
  Bytes asked_ = 0, taken_ = 0;
  std::unordered_set<std::uint64_t, support::SecretHash> slabs_;
};

std::string name_of_owner(const Store& store, trace::StringId id) {
  std::string_view owner = store.text(id);
  owner = owner.substr(owner.rfind('/') == std::string_view::npos ? 0 : owner.rfind('/') + 1);
  return owner.empty() ? "unknown owner" : std::string(owner);
}

// Physical memory that is mapped into a region (cuMemCreate, cuMemMap) is recorded by its handle, not at the region's address.
// It is what the region's framework created.
void move_mapped_regions(const Store& store, const std::map<std::uint64_t, HeldRegion>& unmatched, DriverLevel& out) {
  for (const auto& [address, region] : unmatched) {
    const auto owner = out.owners.find(std::string(framework(store.dictionaries().pools[region.pool].framework).name));
    if (owner == out.owners.end()) continue;
    const Bytes mapped = std::min(owner->second, region.bytes);
    out.regions += mapped;
    owner->second -= mapped;
    if (owner->second == 0) out.owners.erase(owner);
  }
}

}  // namespace

DriverLevel driver_level(const Engine::State& state, std::int64_t device, const std::vector<HeldRegion>& regions, Moment at) {
  const Store& store = state.store;
  DriverLevel out;
  Rounding rounding;
  std::map<trace::StringId, Bytes> by_owner;  // paths are long, and blocks many
  std::map<std::uint64_t, HeldRegion> unmatched;
  for (const HeldRegion& region : regions) unmatched.emplace(region.address, region);
  for (const Place& place : state.places) {
    if (!place.driver || place.device != device || place.name.ends_with("addresses")) continue;
    out.recorded = true;
    const PoolSet pools = state.pools(place);
    // Pools of the stream-ordered allocator hold what the driver reserved for them.
    std::map<std::uint32_t, Bytes> reserved;
    for (const HeldRegion& held : regions_at(store, place, at)) reserved[held.pool] += held.bytes;
    for_each_live(store, at, [&](std::uint32_t alloc) {
      const Kind& kind = store.kind_of(alloc);
      if (kind.pool >= pools.size() || pools[kind.pool] == 0 || (store.site_of(kind).flags & trace::kSiteImported) != 0) return;
      if (store.dictionaries().pools[kind.pool].memory == trace::Memory::managed) {
        out.managed += kind.granted;
        return;
      }
      const auto pool = reserved.find(kind.pool);
      if (pool != reserved.end())
        pool->second -= std::min(pool->second, kind.granted);
      else if (store.dictionaries().pools[kind.pool].memory == trace::Memory::device)
        rounding.add(store.address[alloc], kind.granted);
      out.total += kind.granted;
      if (unmatched.erase(store.address[alloc]) != 0)
        out.regions += kind.granted;
      else
        by_owner[store.site_of(kind).owner] += kind.granted;
    });
    for (const auto& [pool, bytes] : reserved) out.cached += bytes;
  }
  for (const auto& [owner, bytes] : by_owner) out.owners[name_of_owner(store, owner)] += bytes;
  move_mapped_regions(store, unmatched, out);
  out.total += out.cached;
  out.rounding = rounding.bytes();
  return out;
}

}  // namespace vramscope::analyze
