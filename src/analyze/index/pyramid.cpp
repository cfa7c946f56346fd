#include "analyze/index/pyramid.h"

#include <algorithm>
#include <utility>

#include "analyze/index/lifetime.h"
#include "analyze/index/parallel.h"

namespace vramscope::analyze {
namespace {

constexpr std::size_t kFan = 8;

Composition composition_at(const Store& store, const Grouper& grouper, Moment at) {
  Composition out{std::vector<Bytes>(grouper.names().size(), 0)};
  for_each_live(store, at, [&](std::uint32_t alloc) {
    const std::uint8_t band = grouper.of(alloc);
    if (band == kOut) return;
    out.bands[band] += grouper.bytes(alloc);
    out.total += grouper.bytes(alloc);
  });
  return out;
}

// Follows the events of a range. The composition is copied only where the total stops rising, not at each allocation.
class PeakTracker {
 public:
  PeakTracker(Moment begin, Composition& now, std::span<Bytes> peak)
      : now_(now), peak_(peak), range_{now.total, now.total, begin, 0, 0} {
    std::ranges::copy(now.bands, peak.begin());
  }

  void allocate(Moment after, std::uint8_t band, Bytes bytes) {
    range_.allocated += bytes;
    range_.allocs += 1;
    now_.bands[band] += bytes;
    now_.total += bytes;
    last_rise_ = after;
  }
  void free(std::uint8_t band, Bytes bytes) {
    end_rise();
    now_.bands[band] -= bytes;
    now_.total -= bytes;
    range_.low = std::min(range_.low, now_.total);
  }
  Leaf finish() {
    end_rise();
    return range_;
  }

 private:
  void end_rise() {
    if (last_rise_ != kNever && now_.total > range_.high) {
      range_.high = now_.total;
      range_.at = last_rise_;
      std::ranges::copy(now_.bands, peak_.begin());
    }
    last_rise_ = kNever;
  }

  Composition& now_;
  std::span<Bytes> peak_;
  Leaf range_;
  Moment last_rise_ = kNever;  // the last allocation, if no free came after it
};

// From the allocations in each leaf to the allocations before it.
void sum_allocations(std::span<Leaf> leaves) {
  Bytes allocated = 0;
  std::uint64_t allocs = 0;
  for (Leaf& leaf : leaves) {
    allocated += std::exchange(leaf.allocated, allocated);
    allocs += std::exchange(leaf.allocs, allocs);
  }
}

}  // namespace

Leaf measure_range(const Store& store, const Grouper& grouper, Moment from, Moment to, Composition& now, std::span<Bytes> peak) {
  PeakTracker tracker(from, now, peak);
  walk(store, grouper, from, to, [&](std::uint64_t pos, std::uint8_t band, Bytes bytes, bool is_free) {
    if (is_free)
      tracker.free(band, bytes);
    else
      tracker.allocate(pos + 1, band, bytes);
  });
  return tracker.finish();
}

Pyramid Pyramid::build(const Store& store, const Grouper& grouper, unsigned threads) {
  Pyramid out;
  const std::size_t bands = grouper.names().size();
  const std::size_t leaves = std::max<std::size_t>(1, (store.events() + kLeafEvents - 1) / kLeafEvents);
  out.bands_ = bands;
  out.own_leaves_.resize(leaves);
  out.own_start_.resize(leaves * bands);
  out.own_peak_.resize(leaves * bands);
  // Pieces are independent: each gets the composition at its start from the lifetime classes.
  const std::size_t per_piece = std::max<std::size_t>(64, (leaves + 63) / 64);
  parallel(threads, (leaves + per_piece - 1) / per_piece, [&](std::size_t piece, unsigned) {
    const std::size_t first = piece * per_piece, last = std::min(leaves, first + per_piece);
    Composition now = composition_at(store, grouper, first * kLeafEvents);
    for (std::size_t i = first; i < last; ++i) {
      std::ranges::copy(now.bands, &out.own_start_[i * bands]);
      out.own_leaves_[i] = measure_range(store, grouper, i * kLeafEvents, std::min<Moment>(store.events(), (i + 1) * kLeafEvents),
                                         now, {&out.own_peak_[i * bands], bands});
    }
  });
  sum_allocations(out.own_leaves_);
  out.leaves_ = out.own_leaves_;
  out.start_ = out.own_start_;
  out.peak_ = out.own_peak_;
  out.build_tree();
  return out;
}

Pyramid Pyramid::view(std::size_t bands, std::span<const Leaf> leaves, std::span<const Bytes> start,
                      std::span<const Bytes> peak) {
  Pyramid out;
  out.bands_ = bands;
  out.leaves_ = leaves;
  out.start_ = start;
  out.peak_ = peak;
  out.build_tree();
  return out;
}

void Pyramid::build_tree() {
  std::vector<Range> level;
  for (std::size_t i = 0; i < leaves_.size(); ++i) level.push_back({i, leaves_[i].low});
  while (level.size() > 1) {
    std::vector<Range> next;
    for (std::size_t i = 0; i < level.size(); i += kFan) {
      Range node = level[i];
      for (std::size_t j = i + 1; j < std::min(level.size(), i + kFan); ++j) {
        if (leaves_[level[j].highest].high > leaves_[node.highest].high) node.highest = level[j].highest;
        node.low = std::min(node.low, level[j].low);
      }
      next.push_back(node);
    }
    tree_.push_back(std::move(level));
    level = std::move(next);
  }
  tree_.push_back(std::move(level));
}

Pyramid::Range Pyramid::range(std::size_t from, std::size_t to) const {
  Range out{from, leaves_[from].low};
  auto take = [&](const Range& node) {
    const Leaf &a = leaves_[node.highest], &b = leaves_[out.highest];
    if (a.high > b.high || (a.high == b.high && node.highest < out.highest)) out.highest = node.highest;
    out.low = std::min(out.low, node.low);
  };
  for (std::size_t level = 0; from < to; ++level) {
    if (level + 1 == tree_.size()) {
      for (; from < to; ++from) take(tree_[level][from]);
      break;
    }
    for (; from < to && from % kFan != 0; ++from) take(tree_[level][from]);
    for (; from < to && to % kFan != 0; --to) take(tree_[level][to - 1]);
    from /= kFan;
    to /= kFan;
  }
  return out;
}

std::pair<Bytes, std::uint64_t> Pyramid::allocated_before(const Store& store, const Grouper& grouper, Moment at) const {
  std::size_t leaf = std::min<std::size_t>(at / kLeafEvents, leaves_.size() - 1);
  std::pair<Bytes, std::uint64_t> out{leaves_[leaf].allocated, leaves_[leaf].allocs};
  walk(store, grouper, leaf * kLeafEvents, std::min<std::uint64_t>(at, store.events()),
       [&](std::uint64_t, std::uint8_t, Bytes bytes, bool is_free) {
         if (!is_free) {
           out.first += bytes;
           out.second += 1;
         }
       });
  return out;
}

std::vector<Bytes> Pyramid::at(const Store& store, const Grouper& grouper, Moment at) const {
  std::size_t leaf = std::min<std::size_t>(at / kLeafEvents, leaves_.size() - 1);
  auto start = start_of(leaf);
  std::vector<Bytes> now(start.begin(), start.end());
  walk(store, grouper, leaf * kLeafEvents, std::min<std::uint64_t>(at, store.events()),
       [&](std::uint64_t, std::uint8_t band, Bytes bytes, bool is_free) { now[band] += is_free ? Bytes{0} - bytes : bytes; });
  return now;
}

Leaf Pyramid::peak_between(const Store& store, const Grouper& grouper, Moment from, Moment to) const {
  to = std::min<Moment>(to, store.events());
  from = std::min(from, to);
  std::size_t first = from / kLeafEvents + 1, last = to / kLeafEvents;  // whole leaves inside
  std::vector<Bytes> start = at(store, grouper, from);
  Bytes total = 0;
  for (Bytes b : start) total += b;
  Leaf out{total, total, from, 0, 0};
  auto scan = [&](Moment a, Moment b) {
    walk(store, grouper, a, b, [&](std::uint64_t pos, std::uint8_t, Bytes bytes, bool is_free) {
      total += is_free ? Bytes{0} - bytes : bytes;
      if (total > out.high) out = {out.low, total, pos + 1, 0, 0};
      out.low = std::min(out.low, total);
    });
  };
  if (first >= last) {
    scan(from, to);
    return out;
  }
  scan(from, first * kLeafEvents);
  Range middle = range(first, last);
  if (leaves_[middle.highest].high > out.high) {
    out.high = leaves_[middle.highest].high;
    out.at = leaves_[middle.highest].at;
  }
  out.low = std::min(out.low, middle.low);
  total = 0;
  std::size_t end = std::min<std::size_t>(last, leaves_.size() - 1);
  std::vector<Bytes> tail = at(store, grouper, end * kLeafEvents);
  for (Bytes b : tail) total += b;
  scan(end * kLeafEvents, to);
  return out;
}

}  // namespace vramscope::analyze
