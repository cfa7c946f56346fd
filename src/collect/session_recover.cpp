// The part of a session that continues what another collector began.
#include <fmt/format.h>

#include <algorithm>

#include "collect/session.h"
#include "collect/spool/spool_folder.h"

namespace vramscope::collect {

StoredSearch Session::stored_search() const {
  return {.output = options_.output,
          .note = beside_spool(kTraceNote),
          .stem = trace_stem(),
          .start_realtime_us = start_realtime_us()};
}

std::optional<StoredTrace> Session::find_stored() const { return collect::find_stored(stored_search()); }

// With a drain of its own, which takes nothing away from the one that reads for the trace: what a drain holds, the next one reads
// again.
std::uint64_t Session::last_seq_in_spool() {
  Drain drain;
  std::uint64_t last = 0;
  const std::uint64_t end = drawn();  // any number from there on is damage
  drain.pass(spool_, [&](std::uint32_t, const spool::RecordHead& head, std::span<const std::byte>) {
    if (!Definitions::is_definition(head.kind) && head.seq < end) last = std::max(last, head.seq);
  });
  return last;
}

void Session::continue_from(StoredTrace stored) {
  stored_ = std::move(stored);
  open_trace();
}

// Whatever is missing now would be gone for good with the spool: the stored trace is replaced by one with everything, or not at
// all.
void Session::keep_recovered(TraceInfo& result) {
  const std::uint64_t lost = unwritten_ + trace_->writer().dropped();
  if (problem_.empty() && lost > 0) problem_ = fmt::format("{}: cannot write {} events", path_.string(), lost);
  if (problem_.empty()) {
    auto kept = fresh_->keep(stored_ ? stored_->path : find_empty(stored_search()));
    if (kept)
      result.path = path_ = std::move(*kept);
    else
      problem_ = kept.error().message;
  }
  result.complete = problem_.empty();
}

}  // namespace vramscope::collect
