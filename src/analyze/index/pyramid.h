// Exact stacked totals over the whole trace at any zoom.
//
// Leaves of 512 events store the composition at their start and at the instant of their highest total; a tree over them finds
// the highest leaf of any range. A column of a chart is thus a state that actually occurred, never a sum of separate maxima.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "analyze/index/store.h"
#include "analyze/query/grouper.h"

namespace vramscope::analyze {

// Totals over a range of events. In a pyramid, `allocated` and `allocs` are those of all events before the leaf.
struct Leaf {
  Bytes low = 0, high = 0;
  Moment at = 0;  // of the highest total: first such moment
  Bytes allocated = 0;
  std::uint64_t allocs = 0;
};

// The live bytes of each band at some moment, and their sum.
struct Composition {
  std::vector<Bytes> bands;
  Bytes total = 0;
};

// Walks events [from, to) and returns their totals. Moves `now` from the start to the end of the range, and copies the
// composition at the highest total to `peak`.
Leaf measure_range(const Store& store, const Grouper& grouper, Moment from, Moment to, Composition& now, std::span<Bytes> peak);

class Pyramid {
 public:
  static constexpr std::uint64_t kLeafEvents = 512;

  static Pyramid build(const Store& store, const Grouper& grouper, unsigned threads);
  // From the index: `start` and `peak` contain `bands` values per leaf.
  static Pyramid view(std::size_t bands, std::span<const Leaf> leaves, std::span<const Bytes> start, std::span<const Bytes> peak);

  std::size_t bands() const { return bands_; }
  std::span<const Leaf> leaves() const { return leaves_; }
  std::span<const Bytes> start() const { return start_; }
  std::span<const Bytes> peak() const { return peak_; }
  std::span<const Bytes> start_of(std::size_t leaf) const { return start_.subspan(leaf * bands_, bands_); }
  std::span<const Bytes> peak_of(std::size_t leaf) const { return peak_.subspan(leaf * bands_, bands_); }

  struct Range {
    std::size_t highest = 0;  // leaf
    Bytes low = 0;
  };
  // Over leaves [from, to), not empty.
  Range range(std::size_t from, std::size_t to) const;

  // Highest and lowest total over the moments [from, to], exact. Scans at most two leaves' events.
  Leaf peak_between(const Store& store, const Grouper& grouper, Moment from, Moment to) const;
  // Allocations before a moment: their bytes and their number.
  std::pair<Bytes, std::uint64_t> allocated_before(const Store& store, const Grouper& grouper, Moment at) const;
  // Live bytes of each band at any moment.
  std::vector<Bytes> at(const Store& store, const Grouper& grouper, Moment at) const;

 private:
  void build_tree();
  std::size_t bands_ = 1;
  std::vector<Leaf> own_leaves_;
  std::vector<Bytes> own_start_, own_peak_;
  std::span<const Leaf> leaves_;
  std::span<const Bytes> start_, peak_;
  std::vector<std::vector<Range>> tree_;  // [level][node], fan-out 8
};

// Walks events [from, to) and calls f(pos, band, granted, is_free) for each that changes a band's total.
template <typename F>
void walk(const Store& store, const Grouper& grouper, std::uint64_t from, std::uint64_t to, F&& f) {
  if (from < to) store.work.add(to - from);
  for (std::uint64_t pos = from; pos < to; ++pos) {
    std::uint32_t ref = store.ref[pos];
    if (ref == kNone32) continue;
    std::uint64_t alloc = ref >> 1;
    bool is_free = (ref & 1) != 0;
    // Each block counts from the birth to the death stored in the columns: a free without a birth, or a second one, changes
    // nothing.
    if (alloc >= store.birth.size() ||
        (is_free ? store.death[alloc] != pos || store.birth[alloc] >= pos : store.birth[alloc] != pos))
      continue;
    std::uint8_t band = grouper.of(alloc);
    if (band != kOut) f(pos, band, grouper.bytes(alloc), is_free);
  }
}

}  // namespace vramscope::analyze
