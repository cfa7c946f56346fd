#include "collect/write/losses.h"

#include <fmt/format.h>

#include "support/units.h"

namespace vramscope::collect {

std::string describe_loss(trace::LossKind kind, std::uint64_t count) {
  const std::string events = support::format_plural(count, "event", "events");
  switch (kind) {
    case trace::LossKind::overwritten:
      return events + " overwritten before they could be read, oldest first; raise --spool-limit";
    case trace::LossKind::no_segment:
      return events + " did not fit; free some space in the spool folder, or raise --spool-limit";
    case trace::LossKind::reentered:
      return events + " inside the recorder or a signal handler were not recorded";
    case trace::LossKind::names:
      return support::format_plural(count, "name", "names") + " could not be kept: their events have no op or shape";
    case trace::LossKind::gap:
      return events + " started but never finished: the process exited inside the call";
    case trace::LossKind::late:
      return events + " placed later than they happened: a thread was stalled for seconds";
    case trace::LossKind::thinned:
      return events + " omitted to keep the trace within --trace-limit; totals are complete";
    case trace::LossKind::trace_write:
      return events + " could not be written; free some space in the output folder, or choose another one with -o";
  }
  return events + " lost";
}

}  // namespace vramscope::collect
