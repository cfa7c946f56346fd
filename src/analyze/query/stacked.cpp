#include <algorithm>
#include <numeric>

#include "analyze/query/state.h"

namespace vramscope::analyze {
namespace {

// Moments at which the columns start, plus one for the end of the last.
std::vector<Moment> borders(const Store& store, const Stacked& out) {
  std::vector<Moment> at;
  for (std::uint64_t t : out.border_us) at.push_back(t == 0 ? 0 : store.moment_at(t - 1));
  at.back() = store.moment_at(out.border_us.back());  // the end of the range is included
  return at;
}

void push(Stacked& out, const Store& store, Moment at, Bytes low, std::span<const Bytes> composition, std::uint64_t events) {
  Bytes total = 0;
  for (std::size_t g = 0; g < composition.size(); ++g) {
    out.peak[g].push_back(composition[g]);
    total += composition[g];
  }
  out.at.push_back(at);
  out.time_us.push_back(store.time_of(at));
  out.low.push_back(low);
  out.high.push_back(total);
  out.events.push_back(events);
}

// Zoomed out: whole leaves, without touching events. A border moves to the leaf that contains it.
void by_leaves(Stacked& out, const Store& store, const Pyramid& pyramid, const std::vector<Moment>& at) {
  out.exact_borders = false;
  std::size_t leaves = pyramid.leaves().size();
  for (std::size_t c = 0; c + 1 < at.size(); ++c) {
    std::size_t from = std::min<std::size_t>(at[c] / Pyramid::kLeafEvents, leaves - 1);
    std::size_t to = std::clamp<std::size_t>((at[c + 1] + Pyramid::kLeafEvents - 1) / Pyramid::kLeafEvents, from + 1, leaves);
    if (c + 2 < at.size() && to > from + 1 && at[c + 1] % Pyramid::kLeafEvents != 0)
      --to;  // that leaf is the next column's first
    Pyramid::Range range = pyramid.range(from, to);
    push(out, store, pyramid.leaves()[range.highest].at, range.low, pyramid.peak_of(range.highest), at[c + 1] - at[c]);
  }
}

// Zoomed in: every event of the range.
void by_events(Stacked& out, const Store& store, const View& view, const std::vector<Moment>& at) {
  Composition now{view.pyramid.at(store, *view.grouper, at.front())};
  now.total = std::accumulate(now.bands.begin(), now.bands.end(), Bytes{0});
  std::vector<Bytes> peak(now.bands.size());
  for (std::size_t c = 0; c + 1 < at.size(); ++c) {
    const Leaf column = measure_range(store, *view.grouper, at[c], at[c + 1], now, peak);
    push(out, store, column.at, column.low, peak, at[c + 1] - at[c]);
  }
}

}  // namespace

Result<Stacked> Engine::stacked(const StackedRequest& request) const {
  const Store& store = state_->store;
  std::size_t bands = std::clamp<std::size_t>(request.groups, 2, 64);
  auto view = state_->view(request.place, request.by, request.where, bands);
  if (!view) return std::unexpected(view.error());
  std::uint64_t end = store.duration_us();
  std::uint64_t t1 = request.t1_us == 0 ? end : std::min(request.t1_us, end), t0 = std::min(request.t0_us, t1);
  std::uint64_t width = std::clamp<std::uint64_t>(request.width, 1, 16384);
  width = std::max<std::uint64_t>(1, std::min(width, t1 - t0 + 1));  // no column is narrower than the clock's resolution
  Stacked out;
  out.groups = (*view)->grouper->names();
  out.peak.resize(out.groups.size());
  for (std::uint64_t c = 0; c <= width; ++c)
    out.border_us.push_back(t0 + static_cast<std::uint64_t>(static_cast<__uint128_t>(t1 - t0) * c / width));
  std::vector<Moment> at = borders(store, out);
  bool coarse = at.back() - at.front() >= 2 * width * Pyramid::kLeafEvents && at.back() - at.front() > 1'000'000;
  if (coarse)
    by_leaves(out, store, (*view)->pyramid, at);
  else
    by_events(out, store, **view, at);
  return out;
}

}  // namespace vramscope::analyze
