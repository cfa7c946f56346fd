// Which blocks are live at a moment, without a replay: allocations are sorted into classes by floor(log2(lifetime)), each in
// order of birth. Only a range of each class can be live at a moment, and about half of that range is.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "analyze/index/store.h"

namespace vramscope::analyze {

// Fills `order` (as long as there are allocations that were born) and returns kClasses + 1 starts.
std::vector<std::uint64_t> sort_by_lifetime(std::span<const std::uint32_t> birth, std::span<const std::uint32_t> death,
                                            std::span<std::uint32_t> order, unsigned threads);

inline bool lives_at(const Store& store, std::uint64_t alloc, Moment at) {
  return store.birth[alloc] < at && store.death[alloc] >= at;  // kNone32 as death is larger than any moment
}

// Calls f(allocation) for each block that is live at the moment, in no particular order.
template <typename F>
void for_each_live(const Store& store, Moment at, F&& f) {
  if (store.class_start.size() != kClasses + 1) return;
  std::uint64_t looks = 0;
  for (std::size_t c = 0; c < kClasses; ++c) {
    std::uint64_t from = store.class_start[c], to = store.class_start[c + 1];
    if (from > to || to > store.class_order.size()) return;
    auto list = store.class_order.part(from, to);
    auto born_before = [&](std::uint32_t alloc, std::uint64_t pos) { return store.birth[alloc] < pos; };
    auto end = std::lower_bound(list.begin(), list.end(), at, born_before);
    auto begin = list.begin();
    if (c + 1 < kClasses) {
      std::uint64_t longest = std::uint64_t{1} << (c + 1);  // death - birth is below it, and death >= at
      begin = std::lower_bound(list.begin(), end, at > longest ? at - longest : 0, born_before);
    }
    for (auto it = begin; it != end; ++it)
      if (*it < store.death.size() && store.death[*it] >= at) f(*it);
    looks += static_cast<std::uint64_t>(end - begin);
  }
  store.work.add(looks);
}

}  // namespace vramscope::analyze
