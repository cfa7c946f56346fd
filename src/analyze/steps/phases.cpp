#include "analyze/steps/phases.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "analyze/index/lifetime.h"

namespace vramscope::analyze {
namespace {

void measure_phase(const Store& store, const View& view, Phase& phase) {
  const Grouper& grouper = *view.grouper;
  const Leaf peak = view.pyramid.peak_between(store, grouper, phase.begin, phase.end);
  phase.peak = peak.high;
  phase.peak_at = peak.at;
  const auto [bytes_before, allocs_before] = view.pyramid.allocated_before(store, grouper, phase.begin);
  const auto [bytes_after, allocs_after] = view.pyramid.allocated_before(store, grouper, phase.end);
  phase.allocated = bytes_after - bytes_before;
  phase.allocs = allocs_after - allocs_before;
  for_each_live(store, phase.end, [&](std::uint32_t alloc) {
    if (store.birth[alloc] >= phase.begin && grouper.of(alloc) != kOut) phase.growth_kept += grouper.bytes(alloc);
  });
}

// Sums over the end of a list whose values change (a Fenwick tree, backward). Wraps around as all sums of bytes do.
class TailSums {
 public:
  explicit TailSums(std::size_t size) : sums_(size + 1, 0) {}
  void add(std::size_t index, Bytes bytes) {
    for (++index; index > 0; index -= index & (~index + 1)) sums_[index] += bytes;
  }
  Bytes from(std::size_t index) const {
    Bytes sum = 0;
    for (++index; index < sums_.size(); index += index & (~index + 1)) sum += sums_[index];
    return sum;
  }

 private:
  std::vector<Bytes> sums_;
};

// The moments at which phases begin divide the events into stretches. What a phase asks for at its end are sums and maxima over
// the stretches since it began.
class Sweep {
 public:
  Sweep(const Store& store, const Grouper& grouper, std::vector<Moment> begins)
      : store_(store), grouper_(grouper), begins_(std::move(begins)), before_(begins_.size()), kept_(begins_.size()) {}

  // Moments must rise.
  void move_to(Moment at) {
    walk(store_, grouper_, now_, at, [&](std::uint64_t pos, std::uint8_t, Bytes bytes, bool is_free) {
      if (is_free)
        free(pos, bytes);
      else
        allocate(pos, bytes);
    });
    now_ = at;
    if (begun_ < begins_.size() && begins_[begun_] == at) {
      before_[begun_++] = {allocated_, allocs_};
      drop_lower();
      highest_.push_back({at, total_});
    }
  }

  void answer(Moment begin, Phase& phase) const {
    const auto index = static_cast<std::size_t>(std::ranges::lower_bound(begins_, begin) - begins_.begin());
    const auto peak = std::ranges::lower_bound(highest_, begin, {}, &Total::at);
    phase.peak = peak->bytes;
    phase.peak_at = peak->at;
    phase.allocated = allocated_ - before_[index].bytes;
    phase.allocs = allocs_ - before_[index].allocs;
    phase.growth_kept = kept_.from(index);
  }

 private:
  struct Total {
    Moment at = 0;
    Bytes bytes = 0;
  };
  struct Allocated {
    Bytes bytes = 0;
    std::uint64_t allocs = 0;
  };

  void allocate(std::uint64_t pos, Bytes bytes) {
    total_ += bytes;
    allocated_ += bytes;
    ++allocs_;
    if (begun_ == 0) return;
    kept_.add(begun_ - 1, bytes);
    if (drop_lower()) highest_.push_back({pos + 1, total_});
  }
  void free(std::uint64_t pos, Bytes bytes) {
    total_ -= bytes;
    const auto stretch = std::ranges::upper_bound(begins_, std::uint64_t{store_.birth[store_.ref[pos] >> 1]}) - begins_.begin();
    if (stretch > 0) kept_.add(static_cast<std::size_t>(stretch) - 1, Bytes{0} - bytes);
  }
  // Removes lower totals, which cannot become the maximum of a phase any more.
  bool drop_lower() {
    const std::size_t before = highest_.size();
    while (!highest_.empty() && highest_.back().bytes < total_) highest_.pop_back();
    return highest_.size() < before;
  }

  const Store& store_;
  const Grouper& grouper_;
  std::vector<Moment> begins_;     // rising, each once
  std::vector<Allocated> before_;  // of each begin
  TailSums kept_;                  // live bytes by the stretch of their birth
  std::vector<Total> highest_;     // falling: of each stretch, the first highest total unless a later one exceeds it
  std::size_t begun_ = 0;
  Moment now_ = 0;
  Bytes total_ = 0, allocated_ = 0;
  std::uint64_t allocs_ = 0;
};

// The highest value of any range of a list.
class RangeMaxima {
 public:
  explicit RangeMaxima(std::span<const Bytes> values) : size_(values.size()), tree_(2 * values.size(), 0) {
    std::ranges::copy(values, tree_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (std::size_t i = size_; i-- > 1;) tree_[i] = std::max(tree_[2 * i], tree_[2 * i + 1]);
  }
  Bytes between(std::size_t from, std::size_t to) const {
    Bytes high = 0;
    for (from += size_, to += size_; from < to; from /= 2, to /= 2) {
      if (from % 2 == 1) high = std::max(high, tree_[from++]);
      if (to % 2 == 1) high = std::max(high, tree_[--to]);
    }
    return high;
  }

 private:
  std::size_t size_;
  std::vector<Bytes> tree_;
};

}  // namespace

void sweep_phases(const Store& store, const Grouper& grouper, std::span<Phase> phases) {
  const auto end_of = [&](const Phase& phase) { return std::min<Moment>(phase.end, store.events()); };
  const auto begin_of = [&](const Phase& phase) { return std::min(phase.begin, end_of(phase)); };
  std::vector<Moment> begins;
  std::vector<std::size_t> by_end(phases.size());
  std::iota(by_end.begin(), by_end.end(), std::size_t{0});
  std::ranges::sort(by_end, {}, [&](std::size_t i) { return end_of(phases[i]); });
  for (const Phase& phase : phases) begins.push_back(begin_of(phase));
  std::ranges::sort(begins);
  const auto rest = std::ranges::unique(begins);
  begins.erase(rest.begin(), rest.end());
  Sweep sweep(store, grouper, begins);
  std::size_t next = 0;
  for (const std::size_t i : by_end) {
    for (; next < begins.size() && begins[next] <= end_of(phases[i]); ++next) sweep.move_to(begins[next]);
    sweep.move_to(end_of(phases[i]));
    sweep.answer(begin_of(phases[i]), phases[i]);
  }
}

void measure_phases(const Store& store, const View& view, std::span<Phase> phases) {
  if (phases.size() > kFewPhases) return sweep_phases(store, *view.grouper, phases);
  for (Phase& phase : phases) measure_phase(store, view, phase);
}

void measure_host(const Store& store, std::span<Phase> phases) {
  std::vector<std::pair<std::uint64_t, Bytes>> samples;
  for (const auto& sample : store.host_samples) samples.emplace_back(sample.time_us, sample.row.rss);
  std::ranges::stable_sort(samples, {}, &std::pair<std::uint64_t, Bytes>::first);
  std::vector<std::uint64_t> times;
  std::vector<Bytes> sizes;
  for (const auto& [time_us, bytes] : samples) {
    times.push_back(time_us);
    sizes.push_back(bytes);
  }
  const RangeMaxima maxima(sizes);
  for (Phase& phase : phases) {
    const auto from = std::ranges::lower_bound(times, phase.begin_us) - times.begin();
    const auto to = std::ranges::upper_bound(times, phase.end_us) - times.begin();
    if (from < to) phase.host_peak = maxima.between(static_cast<std::size_t>(from), static_cast<std::size_t>(to));
  }
}

}  // namespace vramscope::analyze
