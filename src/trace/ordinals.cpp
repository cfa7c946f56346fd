#include "trace/ordinals.h"

#include <algorithm>
#include <utility>

#include "trace/gen/schema.h"

namespace vramscope::trace {

void OrdinalMap::add(std::uint64_t first, std::uint32_t allocs, bool thinned, std::vector<std::uint64_t> listed) {
  same_ = same_ && !thinned && first == total_;
  // Only a forged file has them out of order; its frees are then not matched.
  ordered_ = ordered_ && (chunks_.empty() || first >= chunks_.back().first);
  chunks_.push_back({first, total_, allocs, thinned, std::move(listed)});
  total_ += allocs;
}

std::uint64_t OrdinalMap::find(std::uint64_t ordinal) const {
  auto range = std::ranges::upper_bound(chunks_, ordinal, {}, &Range::first);
  if (range == chunks_.begin()) return kNone;
  --range;
  if (!range->thinned) return ordinal - range->first < range->allocs ? range->dense + (ordinal - range->first) : kNone;
  const auto listed = std::ranges::lower_bound(range->listed, ordinal);
  if (listed == range->listed.end() || *listed != ordinal) return kNone;
  return range->dense + static_cast<std::uint64_t>(listed - range->listed.begin());
}

void OrdinalMap::translate(std::span<std::uint64_t> ordinals) const {
  if (same_) return;
  for (std::uint64_t& ordinal : ordinals) ordinal = ordinal == kNone || !ordered_ ? kNone : find(ordinal);
}

}  // namespace vramscope::trace
