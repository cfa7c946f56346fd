// Evidence is identity first: blocks of one origin that are made in step after step and never come back. An origin whose blocks
// do come back, later, must in addition show a trend that its own noise does not explain. Where each step replaces a block by a
// larger one, the sum of its origin must rise. Growth that slows down allows no verdict: it may end after the trace does.
#include "analyze/verdict/leak_origin.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace vramscope::analyze {
namespace {

constexpr double kSlowing = -2.6;  // standard errors
constexpr double kTrend = 4.0;     // standard errors, for origins whose blocks also come back

}  // namespace

OriginVerdict judge(const Origin& origin, std::size_t steps) {
  OriginVerdict out;
  // Blocks younger than the oldest one that ever came back may still come back.
  std::size_t wait = 1 + (origin.freed_blocks > 0 ? origin.longest_freed : 0);
  if (steps <= wait) return out;
  std::size_t seen = steps - wait;  // window steps whose survivors count
  std::vector<std::size_t> events;
  for (std::size_t s = 0; s < seen; ++s)
    if (origin.kept[s] > 0) events.push_back(s);
  out.events = events.size();
  if (events.empty()) return out;
  out.first = events.front();
  out.state = OriginVerdict::few;
  if (events.size() < 2) return out;
  std::size_t widest = 0;
  for (std::size_t i = 1; i < events.size(); ++i) widest = std::max(widest, events[i] - events[i - 1]);
  std::size_t silent = seen - 1 - events.back();
  // Silence much longer than any pause before it: it has ended.
  if (silent > 3 * widest + 2 && events.size() >= 2) {
    out.state = OriginVerdict::ended;
    return out;
  }
  // From the first growth to the last, without the first: as many gaps as growths.
  std::span<const double> series(origin.kept.data() + events.front() + 1, events.back() - events.front());
  out.rate = mean_interval(series);
  out.rate.low = std::max(0.0, out.rate.low);
  if (events.size() < kFewestEvents) return out;
  std::span<const double> whole(origin.kept.data() + events.front(), seen - events.front());
  // A curve that bends leaves correlated residuals behind a straight line: compare the ends as well.
  auto third = static_cast<std::ptrdiff_t>(whole.size() / 3);
  double early = std::accumulate(whole.begin(), whole.begin() + third, 0.0),
         late = std::accumulate(whole.end() - third, whole.end(), 0.0);
  if (late < 0.5 * early) {
    out.state = late < 0.01 * early ? OriginVerdict::ended : OriginVerdict::slowing;
    return out;
  }
  Trend trend = trend_of(whole);
  if (trend.t < kSlowing && trend.end < 0.9 * trend.start) {
    out.state = OriginVerdict::slowing;
    return out;
  }
  if (out.rate.low <= 0) {  // so few large growths that none may be the rule
    out.state = OriginVerdict::noisy;
    return out;
  }
  if (origin.freed_blocks > 0) {
    Trend level = trend_of(std::span<const double>(origin.level));
    bool settled = steps >= kFewestNoisy && level.t > kTrend && origin.kept_blocks * 4 > origin.freed_blocks;
    out.state = settled ? OriginVerdict::growing : OriginVerdict::noisy;
    return out;
  }
  out.state = OriginVerdict::growing;
  return out;
}

}  // namespace vramscope::analyze
