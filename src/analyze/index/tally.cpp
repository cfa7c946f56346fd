#include "analyze/index/tally.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "trace/gen/site_flags.h"

namespace vramscope::analyze {
namespace {

// What a block of one kind adds, and to which sums.
struct Share {
  Bytes granted = 0, requested = 0;
  std::uint32_t pool = kNone32;
  std::uint32_t owner = kNone32;  // none: not the driver's device memory
  bool given_again = false;
};

void count_birth(Held& held, const Share& share) {
  if (share.given_again)
    held.frees -= std::min<std::uint64_t>(held.frees, 1);
  else
    ++held.allocs;
  held.end += share.granted;
  held.requested_end += share.requested;
  held.peak = std::max(held.peak, held.end);
  held.requested_peak = std::max(held.requested_peak, held.requested_end);
  held.largest = std::max(held.largest, share.granted);
}

void count_death(Held& held, const Share& share) {
  held.end -= share.granted;
  held.requested_end -= share.requested;
}

// The share of each kind, with the owners numbered in `out`.
std::vector<Share> shares_of(const std::vector<Kind>& kinds, const trace::Dictionaries& dictionaries, Tally& out) {
  std::map<std::string_view, std::uint32_t> owners;
  std::vector<Share> shares;
  shares.reserve(kinds.size());
  for (const Kind& kind : kinds) {
    Share& share = shares.emplace_back();
    if (kind.pool >= dictionaries.pools.size()) continue;
    const trace::Site& site = dictionaries.sites[kind.site];
    const trace::Pool& pool = dictionaries.pools[kind.pool];
    share.granted = kind.granted;
    share.requested = (site.flags & trace::kSiteImported) != 0 ? 0 : kind.requested;
    share.pool = kind.pool;
    share.given_again = (site.flags & trace::kSiteGivenAgain) != 0;
    if (pool.level != trace::Level::driver || !is_device_memory(pool.memory)) continue;
    const std::string_view name = text_of(dictionaries, site.owner);
    const auto [owner, fresh] = owners.try_emplace(name, static_cast<std::uint32_t>(out.owners.size()));
    if (fresh) out.owners.push_back({name.empty() ? 0 : static_cast<std::uint64_t>(site.owner), {}});
    share.owner = owner->second;
  }
  return shares;
}

}  // namespace

bool is_device_memory(trace::Memory memory) {
  return memory == trace::Memory::device || memory == trace::Memory::managed || memory == trace::Memory::array;
}

Tally tally(const Columns& columns, const Tables& tables, const trace::Dictionaries& dictionaries) {
  Tally out;
  out.pools.resize(dictionaries.pools.size());
  const std::vector<Share> shares = shares_of(tables.kinds, dictionaries, out);
  for (std::uint64_t pos = 0; pos < columns.ref.size(); ++pos) {
    const std::uint32_t ref = columns.ref[pos];
    const std::uint32_t alloc = ref >> 1;
    // An allocation in an unreadable chunk was never born, and a damaged file may refer to any number.
    if (ref == kNone32 || alloc >= columns.birth.size() || columns.birth[alloc] == kNone32) continue;
    if (columns.kind[alloc] >= shares.size()) continue;
    const Share& share = shares[columns.kind[alloc]];
    if (share.pool == kNone32) continue;
    const bool is_free = (ref & 1) != 0;
    const bool counts = is_free ? columns.death[alloc] == pos && columns.birth[alloc] < pos : columns.birth[alloc] == pos;
    const auto count = [&](Held& held) {
      if (is_free) ++held.frees;
      if (!counts) return;
      if (is_free)
        count_death(held, share);
      else
        count_birth(held, share);
    };
    count(out.pools[share.pool]);
    if (share.owner == kNone32) continue;
    count(out.driver);
    count(out.owners[share.owner].held);
  }
  for (std::size_t pool = 0; pool < tables.unmatched_frees.size(); ++pool) out.pools[pool].frees += tables.unmatched_frees[pool];
  return out;
}

}  // namespace vramscope::analyze
