#include "analyze/steps/turns.h"

#include <algorithm>
#include <map>

namespace vramscope::analyze {
namespace {

// How often one of the two follows the other.
std::size_t turns(const std::vector<Applied>& steps, std::uint32_t one, std::uint32_t other) {
  std::size_t out = 0;
  std::uint32_t last = 0;
  for (const Applied& s : steps) {
    if (s.by != one && s.by != other) continue;
    out += last != 0 && s.by != last;
    last = s.by;
  }
  return out;
}

// Optimizers that take turns belong to one iteration, which starts with the first of them. Optimizers that follow each other (one
// part is trained first, then the whole) do not: they take few turns compared with their steps.
std::map<std::uint32_t, std::uint32_t> who_leads(const std::vector<Applied>& steps) {
  std::vector<std::uint32_t> leaders;  // in order of appearance
  std::map<std::uint32_t, std::uint32_t> out;
  std::map<std::uint32_t, std::size_t> times;
  for (const Applied& s : steps) ++times[s.by];
  for (const Applied& s : steps) {
    if (s.by == 0 || out.contains(s.by)) continue;
    out[s.by] = s.by;
    for (std::uint32_t leader : leaders)
      if (std::size_t n = turns(steps, leader, s.by); n >= 2 && n >= std::min(times[leader], times[s.by])) {
        out[s.by] = leader;
        break;
      }
    if (out[s.by] == s.by) leaders.push_back(s.by);
  }
  return out;
}

}  // namespace

std::vector<StepRow> join_turns(const std::vector<Applied>& steps) {
  const std::map<std::uint32_t, std::uint32_t> leads = who_leads(steps);
  std::vector<StepRow> out;
  std::map<std::uint32_t, std::size_t> last;  // by leader: its step in `out`
  for (const Applied& s : steps) {
    const std::uint32_t leader = s.by == 0 ? 0 : leads.at(s.by);
    if (leader == s.by) {
      last[leader] = out.size();
      out.push_back(s.step);
      continue;
    }
    StepRow& joined = out[last.at(leader)];
    joined.end = std::max(joined.end, s.step.end);
    joined.end_us = std::max(joined.end_us, s.step.end_us);
    joined.retraced |= s.step.retraced;
    joined.open = s.step.open;
  }
  return out;
}

}  // namespace vramscope::analyze
