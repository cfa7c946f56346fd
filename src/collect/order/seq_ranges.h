// A set of sequence numbers, stored as ranges. A healthy trace has few of them; a damaged one has at most one per event,
// however large the numbers are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace vramscope::collect {

class SeqRanges {
 public:
  // Accepts any order; cheap if numbers arrive in order. Query only after sort().
  void add(std::uint64_t seq) {
    if (seq == kNone) return;
    if (!ranges_.empty() && seq == ranges_.back().end) {
      ++ranges_.back().end;
    } else if (ranges_.empty() || seq != ranges_.back().end - 1) {
      ranges_.push_back({seq, seq + 1});
    }
  }
  void sort() {
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
    std::size_t kept = 0;
    for (const Range& range : ranges_) {
      if (kept > 0 && range.first <= ranges_[kept - 1].end)
        ranges_[kept - 1].end = std::max(ranges_[kept - 1].end, range.end);
      else
        ranges_[kept++] = range;
    }
    ranges_.resize(kept);
  }

  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  // The first number from `seq` on that is not in the set.
  std::uint64_t first_outside(std::uint64_t seq) const {
    const auto range = first_ending_after(seq);
    return range != ranges_.end() && range->first <= seq ? range->end : seq;
  }
  // The first number from `seq` on that is in the set, or kNone.
  std::uint64_t first_inside(std::uint64_t seq) const {
    const auto range = first_ending_after(seq);
    return range == ranges_.end() ? kNone : std::max(range->first, seq);
  }
  bool contains(std::uint64_t seq) const { return first_outside(seq) != seq; }

 private:
  struct Range {
    std::uint64_t first, end;
  };
  std::vector<Range>::const_iterator first_ending_after(std::uint64_t seq) const {
    return std::partition_point(ranges_.begin(), ranges_.end(), [seq](const Range& range) { return range.end <= seq; });
  }

  std::vector<Range> ranges_;
};

}  // namespace vramscope::collect
