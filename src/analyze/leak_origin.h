// What the survivors of one origin say.
#pragma once

#include "analyze/series.h"
#include "analyze/survivors.h"

namespace vramscope::analyze {

struct OriginVerdict {
  // none: nothing is kept; few: too few growths to tell; ended: it stopped; slowing: it may stop beyond the trace;
  // noisy: blocks come and go, and no trend stands out of that.
  enum State { none, few, ended, slowing, noisy, growing } state = none;
  std::size_t events = 0;  // steps that kept something
  std::size_t first = 0;   // window step of the first
  Interval rate;           // bytes a step from the first growth on
};
OriginVerdict judge(const Origin& origin, std::size_t steps);

}  // namespace vramscope::analyze
