#include "whatif/forecast/forecast.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace vramscope::whatif {
namespace {

constexpr double kTolerance = 0.002;  // of the ratio of two sizes
constexpr double kGap = 1;            // cost of an allocation without a counterpart
constexpr std::size_t kMostCells = 4'000'000, kMostCellsInAll = 200'000'000;

// How sizes may grow: with the ratio of two batches, or up to the square of that of two lengths.
struct Growth {
  double ratio = 1, most = 1;
};

double match_cost(Bytes small, Bytes large, const Growth& growth) {
  if (small == large) return 0;
  const double grown = static_cast<double>(large) / static_cast<double>(std::max<Bytes>(small, 1));
  if (std::abs(grown / growth.ratio - 1) <= kTolerance || std::abs(grown / growth.most - 1) <= kTolerance) return 0.05;
  return grown > 1 && grown < growth.most ? 0.6 : 3;
}

using Sizes = std::vector<Bytes>;
// For each of `large`, its counterpart in `small`, or -1.
using Pairs = std::vector<int>;

double cost_of(const Sizes& small, const Sizes& large, const Pairs& pairs, const Growth& growth) {
  double sum = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    sum += pairs[i] < 0 ? kGap : match_cost(small[static_cast<std::size_t>(pairs[i])], large[i], growth);
  return sum;
}

Pairs in_order(std::size_t small, std::size_t large) {
  Pairs out(large, -1);
  for (std::size_t i = 0; i < std::min(small, large); ++i) out[i] = static_cast<int>(i);
  return out;
}

// Threads may have made the same allocations in another order: the n-th smallest belongs to the n-th smallest.
Pairs by_rank(const Sizes& small, const Sizes& large) {
  const auto ranked = [](const Sizes& sizes) {
    std::vector<std::size_t> out(sizes.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
    std::ranges::stable_sort(out, [&](std::size_t a, std::size_t b) { return sizes[a] < sizes[b]; });
    return out;
  };
  const auto a = ranked(small), b = ranked(large);
  Pairs out(large.size(), -1);
  for (std::size_t i = 0; i < b.size(); ++i) out[b[i]] = static_cast<int>(a[i]);
  return out;
}

// The alignment with the lowest cost: libraries ask for other workspaces at other sizes, so that one list is longer.
// `cells_left`: so many comparisons are left to all of them.
Pairs aligned(const Sizes& small, const Sizes& large, const Growth& growth, std::size_t& cells_left) {
  const std::size_t rows = small.size() + 1, columns = large.size() + 1;
  if (rows * columns > std::min(kMostCells, cells_left)) return in_order(small.size(), large.size());
  cells_left -= rows * columns;
  std::vector<double> cost(rows * columns);
  const auto cell = [&](std::size_t i, std::size_t j) -> double& { return cost[i * columns + j]; };
  for (std::size_t i = 0; i < rows; ++i) cell(i, 0) = kGap * static_cast<double>(i);
  for (std::size_t j = 0; j < columns; ++j) cell(0, j) = kGap * static_cast<double>(j);
  for (std::size_t i = 1; i < rows; ++i)
    for (std::size_t j = 1; j < columns; ++j)
      cell(i, j) = std::min(
          {cell(i - 1, j - 1) + match_cost(small[i - 1], large[j - 1], growth), cell(i - 1, j) + kGap, cell(i, j - 1) + kGap});
  Pairs out(large.size(), -1);
  for (std::size_t i = rows - 1, j = columns - 1; i > 0 && j > 0;) {
    if (cell(i, j) == cell(i - 1, j - 1) + match_cost(small[i - 1], large[j - 1], growth)) {
      out[--j] = static_cast<int>(--i);
    } else if (cell(i, j) == cell(i - 1, j) + kGap) {
      --i;
    } else {
      --j;
    }
  }
  return out;
}

Pairs paired(const Sizes& small, const Sizes& large, const Growth& growth, std::size_t& cells_left) {
  if (small.size() != large.size()) return aligned(small, large, growth, cells_left);
  Pairs out = in_order(small.size(), large.size());
  const double cost = cost_of(small, large, out, growth);
  if (cost == 0) return out;
  if (Pairs ranked = by_rank(small, large); cost_of(small, large, ranked, growth) < cost) return ranked;
  return out;
}

struct Group {
  Sizes sizes;
  std::vector<std::size_t> at;  // positions in the requests
};
using Groups = std::map<std::pair<std::uint64_t, std::uint32_t>, Group>;  // by key and section

Groups grouped(std::span<const Request> requests) {
  Groups out;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Group& group = out[{requests[i].key, requests[i].section}];
    group.sizes.push_back(requests[i].bytes);
    group.at.push_back(i);
  }
  return out;
}

// The same place in the same step; in the nearest earlier step if that one does not have it, else in the nearest later one.
const Group* counterpart(const Groups& groups, std::uint64_t key, std::uint32_t section) {
  auto at = groups.upper_bound({key, section});
  if (at != groups.begin() && std::prev(at)->first.first == key) return &std::prev(at)->second;
  return at != groups.end() && at->first.first == key ? &at->second : nullptr;
}

// For each request of `large`, the size of its counterpart in `small`.
std::vector<std::optional<Bytes>> counterparts(const Recording& small, const Recording& large, const Growth& growth) {
  const Groups from = grouped(small.requests), to = grouped(large.requests);
  std::vector<std::optional<Bytes>> out(large.requests.size());
  std::size_t cells_left = kMostCellsInAll;
  for (const auto& [place, group] : to) {
    const Group* const other = counterpart(from, place.first, place.second);
    if (other == nullptr) continue;
    const Pairs pairs = paired(other->sizes, group.sizes, growth, cells_left);
    for (std::size_t i = 0; i < group.at.size(); ++i)
      if (pairs[i] >= 0) out[group.at[i]] = other->sizes[static_cast<std::size_t>(pairs[i])];
  }
  return out;
}

}  // namespace

Bytes Scaling::at(double batch) const {
  const double bytes = fixed + per_unit * batch + per_square * batch * batch;
  constexpr auto kMost = static_cast<double>(kLargestDevice);  // more than that fails anyway
  return bytes < 1 ? 1 : static_cast<Bytes>(std::llround(std::min(bytes, kMost)));
}

Scaling line_through(double batch_small, Bytes small, double batch_large, Bytes large) {
  const double a = static_cast<double>(small), b = static_cast<double>(large);
  if (small == large) return {b, 0, false};
  const double ratio = batch_large / batch_small;
  if (std::abs(b / a / ratio - 1) <= 1e-6) return {0, b / batch_large, false};
  const double per_unit = (b - a) / (batch_large - batch_small), fixed = b - per_unit * batch_large;
  if (std::abs(fixed) < 0.001 * b) return {0, b / batch_large, false};
  // Smaller at a larger batch, or faster than the batch: another algorithm was chosen.
  if (per_unit < 0) return {b, 0, true};
  return {fixed, per_unit, fixed < 0};
}

Scaling parabola_through(const SizeAt& small, const SizeAt& middle, const SizeAt& large) {
  const Scaling line = line_through(small.length, small.bytes, large.length, large.bytes);
  const auto on_line = static_cast<double>(line.at(middle.length)), between = static_cast<double>(middle.bytes);
  if (!line.uncertain && std::abs(on_line - between) <= kTolerance * between) return line;
  const auto slope = [](const SizeAt& a, const SizeAt& b) {
    return (static_cast<double>(b.bytes) - static_cast<double>(a.bytes)) / (b.length - a.length);
  };
  const double square = (slope(middle, large) - slope(small, middle)) / (large.length - small.length);
  const double per_unit = slope(small, middle) - square * (small.length + middle.length);
  const double fixed = static_cast<double>(small.bytes) - per_unit * small.length - square * small.length * small.length;
  // Bent downward: another algorithm was chosen.
  if (square < 0) return {static_cast<double>(large.bytes), 0, true};
  return {fixed, per_unit, false, square};
}

std::vector<Scaling> scalings(const Recording& small, const Recording& large) {
  const double ratio = large.batch / small.batch;
  const auto others = counterparts(small, large, {ratio, ratio});
  std::vector<Scaling> out;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const Bytes bytes = large.requests[i].bytes;
    out.push_back(others[i] ? line_through(small.batch, *others[i], large.batch, bytes)
                            : Scaling{static_cast<double>(bytes), 0, true});
  }
  return out;
}

std::vector<Scaling> scalings(const Recording& small, const Recording& middle, const Recording& large) {
  const auto from = [&](const Recording& other) {
    const double ratio = large.batch / other.batch;
    return counterparts(other, large, {ratio, ratio * ratio});
  };
  const auto first = from(small), second = from(middle);
  std::vector<Scaling> out;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Bytes bytes = large.requests[i].bytes;
    out.push_back(first[i] && second[i]
                      ? parabola_through({small.batch, *first[i]}, {middle.batch, *second[i]}, {large.batch, bytes})
                      : Scaling{static_cast<double>(bytes), 0, true});
  }
  return out;
}

Events substituted(std::span<const Event> events, std::span<const Scaling> by_block, double batch) {
  Events out(events.begin(), events.end());
  for (Event& event : out)
    if (event.what == What::alloc && event.block < by_block.size()) event.bytes = by_block[event.block].at(batch);
  return out;
}

}  // namespace vramscope::whatif
