#include "collect/losses.h"

#include <fmt/format.h>

#include "support/units.h"

namespace vramscope::collect {

std::string describe_loss(trace::LossKind kind, std::uint64_t count) {
  const std::string events = support::format_plural(count, "event", "events");
  switch (kind) {
    case trace::LossKind::overwritten:
      return events + " overwritten before they could be read, oldest first: give more room with --spool-limit";
    case trace::LossKind::no_segment:
      return events + " found no room: free space in the spool's folder or raise --spool-limit";
    case trace::LossKind::reentered:
      return events + " inside the recorder or a signal handler were not recorded";
    case trace::LossKind::names:
      return support::format_plural(count, "name", "names") + " could not be kept: their events are without op or shape";
    case trace::LossKind::gap:
      return events + " begun and never finished: the process ended inside the call";
    case trace::LossKind::late:
      return events + " stand later than they happened: a thread was held up for seconds";
    case trace::LossKind::thinned:
      return events + " left out to keep the trace within --trace-limit; totals are whole";
    case trace::LossKind::trace_write:
      return events + " could not be written: free space in the output folder, or choose another with -o";
  }
  return events + " lost";
}

}  // namespace vramscope::collect
