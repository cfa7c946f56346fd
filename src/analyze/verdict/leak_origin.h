// What the survivors of one origin show.
#pragma once

#include "analyze/verdict/series.h"
#include "analyze/verdict/survivors.h"

namespace vramscope::analyze {

inline constexpr std::size_t kFewestEvents = 8;  // growths needed before a verdict
// Steps needed for origins whose blocks also come back: what wanders slowly looks like a trend in fewer.
inline constexpr std::size_t kFewestNoisy = 32;

struct OriginVerdict {
  // none: nothing is kept; few: too few growths to tell; ended: it stopped; slowing: it may stop after the trace ends; noisy:
  // blocks come and go, without a clear trend.
  enum State { none, few, ended, slowing, noisy, growing } state = none;
  std::size_t events = 0;  // steps that kept something
  std::size_t first = 0;   // window step of the first
  Interval rate;           // bytes per step from the first growth on
};
OriginVerdict judge(const Origin& origin, std::size_t steps);

}  // namespace vramscope::analyze
