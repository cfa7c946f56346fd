#include "record/segments.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/spool_file.h"
#include "spool/free_list.h"

namespace vramscope::record {

namespace {

using spool::SegmentHeader;
using spool::SegmentState;

SegmentHeader* take_free(Control& control) {
  std::uint64_t probes = 0;
  const std::uint32_t count = control.header->segment_count.load(std::memory_order_acquire);
  SegmentHeader* segment =
      spool::pop_free(*control.header, count, [&](std::uint32_t index) { return segment_at(control, index); }, probes);
  control.probes.fetch_add(probes, std::memory_order_relaxed);
  return segment;
}

// Counted once it can be found: an unsuccessful search remembers the count (find_segment). Two threads may draw the same age.
void seal(Control& control, SegmentHeader* segment) {
  segment->seal.store(control.header->seals.load(std::memory_order_relaxed), std::memory_order_relaxed);
  segment->state.store(SegmentState::sealed, std::memory_order_release);  // pairs with the collector's and the thief's CAS
  control.header->seals.fetch_add(1, std::memory_order_release);
}

SegmentHeader* take_oldest_sealed(Control& control) {
  const std::uint32_t count = control.header->segment_count.load(std::memory_order_acquire);
  for (int attempt = 0; attempt < 8; ++attempt) {
    control.probes.fetch_add(count, std::memory_order_relaxed);
    SegmentHeader* oldest = nullptr;
    for (std::uint32_t i = 0; i < count; ++i) {
      SegmentHeader* segment = segment_at(control, i);
      if (segment->state.load(std::memory_order_acquire) == SegmentState::sealed &&
          (oldest == nullptr || segment->seal.load(std::memory_order_relaxed) < oldest->seal.load(std::memory_order_relaxed)))
        oldest = segment;
    }
    if (oldest == nullptr) return nullptr;
    SegmentState expected = SegmentState::sealed;
    if (oldest->state.compare_exchange_strong(expected, SegmentState::owned, std::memory_order_acquire)) return oldest;
  }
  return nullptr;
}

bool is_definition(spool::RecordKind kind) { return kind >= spool::RecordKind::string; }

// Bytes and number of the definitions in a segment.
struct Definitions {
  std::uint32_t bytes;
  std::uint32_t records;
};

// Calls body(record, its length) for each definition up to `end`.
template <typename Body>
Definitions each_definition(SegmentHeader* segment, std::uint32_t end, Body body) {
  auto* bytes = reinterpret_cast<std::byte*>(segment);
  Definitions found{};
  for (std::uint32_t at = sizeof(SegmentHeader); at < end;) {
    const auto* head = reinterpret_cast<const spool::RecordHead*>(bytes + at);
    const std::uint32_t length = head->slots * static_cast<std::uint32_t>(spool::kSlotBytes);
    if (length == 0 || length > end - at) break;
    at += length;
    if (!is_definition(head->kind)) continue;
    body(head, length);
    found.bytes += length;
    ++found.records;
  }
  return found;
}

// The oldest sealed segment whose events can be dropped. A name is defined once and needed forever: definitions are kept, and a
// segment that is nearly full of them is skipped.
SegmentHeader* take_for_overwriting(Control& control) {
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    SegmentHeader* segment = take_oldest_sealed(control);
    if (segment == nullptr) return nullptr;
    const Definitions kept = each_definition(segment, segment->committed.load(std::memory_order_relaxed),
                                             [](const spool::RecordHead*, std::uint32_t) {});
    const bool worth_it = kept.bytes <= spool::kSegmentBytes / 2;
    if (!worth_it && attempt + 1 < kAttempts) {
      seal(control, segment);
      continue;
    }
    const spool::LossKind detail = spool::LossKind::overwritten;
    control.header->lost[static_cast<std::size_t>(detail)].fetch_add(segment->records - kept.records, std::memory_order_relaxed);
    if (worth_it) return segment;
    control.header->lost[static_cast<std::size_t>(spool::LossKind::names)].fetch_add(kept.records, std::memory_order_relaxed);
    segment->committed.store(sizeof(SegmentHeader), std::memory_order_relaxed);
    return segment;
  }
  return nullptr;
}

// A segment for the calling thread. NULL: none is available.
SegmentHeader* find_segment(Control& control) {
  // Only what was freed or sealed since the last unsuccessful search can be found: without this, every event of a full spool
  // would search all of it.
  const std::uint64_t offered = control.header->given_back.load(std::memory_order_acquire) +  // pairs with push_free and seal
                                control.header->seals.load(std::memory_order_acquire);
  if (offered == control.nothing_at.load(std::memory_order_relaxed)) return nullptr;
  SegmentHeader* segment = take_free(control);
  // Growing takes about 100 us, or about 10 ms if the growing thread loses its core. Others wait for it, at most about 200 ms.
  // After that, detail is lost rather than time.
  for (int moment = 0; segment == nullptr && moment < 2000; ++moment) {
    const Growth growth = grow(control);
    const timespec pause{0, moment < 50 ? 0 : 100'000};
    if (growth == Growth::busy) syscall(SYS_nanosleep, &pause, nullptr);
    segment = take_free(control);  // also when refused: another thread may have grown the spool to its limit since the last look
    if (growth == Growth::refused) break;
  }
  if (segment != nullptr) {
    segment->committed.store(sizeof(SegmentHeader), std::memory_order_relaxed);
    return segment;
  }
  segment = take_for_overwriting(control);
  if (segment == nullptr) control.nothing_at.store(offered, std::memory_order_relaxed);
  return segment;
}

}  // namespace

std::uint64_t segment_probes() {
  const Control* control = g_control.load(std::memory_order_acquire);
  return control != nullptr ? control->probes.load(std::memory_order_relaxed) : 0;
}

bool next_segment(Control& control) {
  const int errno_before = errno;
  ThreadState& thread = t_state;
  if (thread.segment != nullptr) seal(control, reinterpret_cast<SegmentHeader*>(thread.segment));
  thread.segment = nullptr;
  SegmentHeader* segment = find_segment(control);
  errno = errno_before;
  if (segment == nullptr) {
    control.header->lost[static_cast<std::size_t>(spool::LossKind::no_segment)].fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const std::uint32_t old_end = segment->committed.load(std::memory_order_relaxed);  // of what an overwritten segment contained
  // Emptied under the old generation: a reader that finds the new one must not find the old length with it. One that is still
  // copying the previous contents sees the new generation and discards its copy.
  segment->committed.store(sizeof(SegmentHeader), std::memory_order_relaxed);
  segment->generation.fetch_add(1, std::memory_order_acq_rel);
  std::atomic_thread_fence(std::memory_order_release);
  segment->thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
  segment->records = 0;
  thread.segment = reinterpret_cast<std::byte*>(segment);
  thread.cursor = sizeof(SegmentHeader);
  const Definitions kept = each_definition(segment, old_end, [&](const spool::RecordHead* record, std::uint32_t length) {
    memmove(thread.segment + thread.cursor, record, length);  // never to a higher position: what comes next is still unread there
    thread.cursor += length;
  });
  segment->records = kept.records;
  segment->committed.store(thread.cursor, std::memory_order_release);
  return true;
}

}  // namespace vramscope::record
