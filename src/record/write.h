// Writes records into the thread's segment. Inline, because every event takes this path. Only for the recorder's own files.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "record/recorder.h"
#include "record/segments.h"
#include "record/state.h"

namespace vramscope::record {

inline std::uint64_t ticks(const Control& control) { return control.use_tsc ? base::tsc() : base::monotonic_ns(); }

inline void count_loss(const Control& control, spool::LossKind loss) {
  control.header->lost[static_cast<std::size_t>(loss)].fetch_add(1, std::memory_order_relaxed);
}

// Room for one record in the thread's segment. The head is filled, except for seq.
template <typename Record>
inline Record* room(Control& control, spool::RecordKind kind, std::size_t bytes = sizeof(Record)) {
  ThreadState& thread = t_state;
  const auto slots = static_cast<std::uint32_t>((bytes + spool::kSlotBytes - 1) / spool::kSlotBytes);
  const std::uint32_t needed = slots * static_cast<std::uint32_t>(spool::kSlotBytes);
  if (__builtin_expect(thread.segment == nullptr || thread.cursor + needed > spool::kSegmentBytes, 0))
    if (!next_segment(control)) return nullptr;
  auto* record = reinterpret_cast<Record*>(thread.segment + thread.cursor);
  spool::RecordHead& head = *reinterpret_cast<spool::RecordHead*>(record);
  head.seq = 0;
  head.ticks = ticks(control);
  head.kind = kind;
  head.flags = 0;
  head.slots = static_cast<std::uint16_t>(slots);
  head.pool = kNoPool;
  head.dtype = 0;
  head.small = 0;
  return record;
}

inline void commit(const spool::RecordHead& head) {
  ThreadState& thread = t_state;
  auto* segment = reinterpret_cast<spool::SegmentHeader*>(thread.segment);
  thread.cursor += head.slots * static_cast<std::uint32_t>(spool::kSlotBytes);
  ++segment->records;
  segment->committed.store(thread.cursor, std::memory_order_release);  // pairs with the collector's acquire
}

inline std::uint64_t seq_or_draw(const Control& control, std::uint64_t seq) {
  return seq != 0 ? seq : control.header->next_seq.fetch_add(1, std::memory_order_relaxed);
}

inline void raise_to(std::atomic<std::uint64_t>& peak, std::uint64_t value) {
  std::uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// Runs `body(control)` with the thread marked busy; drops and counts the event if it already was.
template <typename Body>
inline void recorded(Body body) {
  Control* control = live_control();
  if (control == nullptr) return;
  if (t_state.busy != 0) {
    count_loss(*control, spool::LossKind::reentered);
    return;
  }
  t_state.busy = 1;
  body(*control);
  t_state.busy = 0;
}

// Like intern(), for the body of recorded().
std::uint32_t intern_inside(Control& control, const char* text, std::size_t bytes);
std::uint32_t intern_inside(Control& control, const char* text);  // NUL terminated, NULL = empty

}  // namespace vramscope::record
