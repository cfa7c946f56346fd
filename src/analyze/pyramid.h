// Exact stacked totals over the whole trace at any zoom.
//
// Leaves of 512 events hold the composition at their start and at the instant of their highest total; a tree over them finds
// the highest leaf of any range. A column of a chart is then a state that really occurred, never a sum of separate maxima.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "analyze/grouper.h"
#include "analyze/store.h"

namespace vramscope::analyze {

struct Leaf {
  Bytes low = 0, high = 0;
  Moment at = 0;        // of the highest total: first such moment
  Bytes allocated = 0;  // by all allocations before the leaf
  std::uint64_t allocs = 0;
};

class Pyramid {
 public:
  static constexpr std::uint64_t kLeafEvents = 512;

  static Pyramid build(const Store& store, const Grouper& grouper, unsigned threads);
  // From the index: `start` and `peak` hold `bands` values for each leaf.
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
  // Composition at any moment.
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
  for (std::uint64_t pos = from; pos < to; ++pos) {
    std::uint32_t ref = store.ref[pos];
    if (ref == kNone32) continue;
    std::uint64_t alloc = ref >> 1;
    bool is_free = (ref & 1) != 0;
    // Each block counts from the birth to the death that the columns keep: a free without birth, or a second one, changes
    // nothing.
    if (alloc >= store.birth.size() ||
        (is_free ? store.death[alloc] != pos || store.birth[alloc] >= pos : store.birth[alloc] != pos))
      continue;
    std::uint8_t band = grouper.of(alloc);
    if (band != kOut) f(pos, band, grouper.bytes(alloc), is_free);
  }
}

}  // namespace vramscope::analyze
