// Puts the events of all threads into the order of their sequence numbers.
//
// Numbers are dense from 1, so the next one is known. A missing number (its thread was interrupted or killed between drawing
// the number and writing the record) delays the others for a limited time and a limited number of events; then it is skipped.
// If it arrives later, it is delivered at once, as late.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "collect/order/seq_ranges.h"
#include "collect/spool/occupancy.h"
#include "spool/layout.h"

namespace vramscope::collect {

// A record with a sequence number, copied out of the spool.
struct Event {
  static constexpr std::size_t kMaxBytes = 3 * spool::kSlotBytes;  // the longest: an alloc with its extra, stats

  spool::RecordHead head{};
  std::uint32_t thread = 0;
  alignas(8) std::array<std::byte, kMaxBytes> bytes{};

  // The record as its type; bytes beyond its length read as zero.
  template <typename Record>
  Record as() const {
    static_assert(sizeof(Record) <= kMaxBytes);
    Record record;
    std::memcpy(&record, bytes.data(), sizeof record);
    return record;
  }
  spool::AllocExtra extra() const {
    spool::AllocExtra extra;
    std::memcpy(&extra, bytes.data() + sizeof(spool::AllocRecord), sizeof extra);
    return extra;
  }
};

// False: wait, something that the event needs has not arrived yet. With `last_call`, the event is delivered without it.
using Deliver = std::function<bool(const Event& event, bool late, bool last_call)>;

class Merger {
 public:
  struct Limits {
    std::uint64_t wait_us = 2'000'000;
    std::size_t events = std::size_t{1} << 20;  // events held at once; a power of two
  };

  Merger() : Merger(Limits{}) {}
  explicit Merger(Limits limits);

  // `drawn`: the first number that has not been drawn yet; any number from there on is damage.
  void add(const Event& event, std::uint64_t drawn);
  void release(std::uint64_t now_us, const Deliver& deliver);
  // Delivers what is due without skipping anything; for the middle of a pass.
  void release_due(const Deliver& deliver) { deliver_contiguous(deliver); }
  // No more events will arrive: delivers everything and counts what is missing below `drawn`.
  void finish(std::uint64_t drawn, const Deliver& deliver);
  // Events that are already stored: neither to be delivered nor missing (recover).
  void set_stored(SeqRanges stored) { stored_ = std::move(stored); }

  // Everything below this number has been delivered or skipped.
  std::uint64_t next() const { return next_; }
  std::uint64_t missing() const { return missing_; }  // skipped and not arrived since
  std::uint64_t late() const { return late_; }
  std::uint64_t refused() const { return refused_; }  // duplicates, or numbers that were never drawn
  std::size_t waiting() const { return waiting_; }

 private:
  Event& slot(std::uint64_t seq) { return window_[seq & (window_.size() - 1)]; }
  bool present(std::uint64_t seq) { return slot(seq).head.seq == seq; }
  bool fits(std::uint64_t seq) const { return seq - next_ < window_.size(); }
  bool widen(std::uint64_t seq);
  void place(const Event& event);
  bool place_overflow();
  std::uint64_t first_waiting() const;
  void delivered();
  bool take_late(std::uint64_t seq);
  void deliver_late(const Deliver& deliver);
  bool deliver_contiguous(const Deliver& deliver);
  void deliver_all_due(const Deliver& deliver);
  void step_over(const Deliver& deliver);
  void skip_to(std::uint64_t seq);

  Limits limits_;
  std::vector<Event> window_;    // event `seq` is in slot seq % size
  Occupancy taken_;              // slots of waiting events
  std::vector<Event> overflow_;  // arrived while the window was full
  bool overflow_sorted_ = true;
  std::vector<Event> late_events_;
  std::map<std::uint64_t, std::uint64_t> skipped_;  // first -> one past the last
  SeqRanges stored_;
  std::uint64_t next_ = 1;
  std::uint64_t stalled_since_us_ = 0;  // 0 = not stalled
  std::size_t waiting_ = 0;
  std::uint64_t missing_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace vramscope::collect
