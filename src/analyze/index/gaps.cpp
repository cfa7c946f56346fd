#include "analyze/index/gaps.h"

#include <algorithm>
#include <map>

namespace vramscope::analyze {

void end_overwritten(const Columns& columns, const std::vector<Kind>& kinds, std::vector<Gap> gaps) {
  using Blocks = std::map<std::uint64_t, std::uint32_t>;  // address -> allocation
  std::map<std::uint32_t, Blocks> pools;
  auto kind_of = [&](std::uint32_t alloc) -> const Kind* {
    return columns.kind[alloc] < kinds.size() ? &kinds[columns.kind[alloc]] : nullptr;
  };
  auto end_in_gap = [&](std::uint32_t alloc, std::uint64_t before) {
    for (Gap& gap : gaps) {
      if (gap.begin < columns.birth[alloc] || gap.end > before || gap.begin == gap.end) continue;
      columns.death[alloc] = static_cast<std::uint32_t>(gap.begin);
      columns.ref[gap.begin++] = alloc << 1 | 1;
      return;
    }
  };
  for (std::uint64_t pos = 0; pos < columns.ref.size(); ++pos) {
    std::uint32_t ref = columns.ref[pos];
    if (ref == kNone32 || (ref >> 1) >= columns.birth.size()) continue;
    std::uint32_t alloc = ref >> 1;
    const Kind* kind = kind_of(alloc);
    if (kind == nullptr) continue;
    Blocks& live = pools[kind->pool];
    std::uint64_t address = columns.address[alloc];
    if ((ref & 1) != 0) {
      if (auto it = live.find(address); it != live.end() && it->second == alloc) live.erase(it);
      continue;
    }
    auto it = live.upper_bound(address);
    if (it != live.begin()) --it;
    while (it != live.end() && it->first < address + std::max<Bytes>(kind->granted, 1)) {
      const Kind* older = kind_of(it->second);
      bool overlaps = it->first + (older == nullptr ? 1 : std::max<Bytes>(older->granted, 1)) > address;
      if (overlaps) end_in_gap(it->second, pos);
      it = overlaps ? live.erase(it) : std::next(it);
    }
    live[address] = alloc;
  }
}

}  // namespace vramscope::analyze
