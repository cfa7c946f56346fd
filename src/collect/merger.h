// Puts the events of all threads into the one order of their sequence numbers.
//
// Numbers are dense from 1, so that the next one is known. One that is missing (its thread was interrupted between drawing the
// number and writing the record, or was killed there) holds the others up for a bounded time and a bounded number of events;
// then it is skipped. If it comes after all, it is delivered at once, as late.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

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

// False: wait, something that the event needs is not there yet. With `last_call` it has to do without.
using Deliver = std::function<bool(const Event& event, bool late, bool last_call)>;

class Merger {
 public:
  struct Limits {
    std::uint64_t wait_us = 2'000'000;
    std::size_t events = std::size_t{1} << 20;  // held at once; a power of two
  };

  Merger() : Merger(Limits{}) {}
  explicit Merger(Limits limits);

  // `drawn`: a number that has not been drawn yet; anything from there on is damage.
  void add(const Event& event, std::uint64_t drawn);
  void release(std::uint64_t now_us, const Deliver& deliver);
  // What is due without giving anything up; for the middle of a pass.
  void release_due(const Deliver& deliver) { deliver_contiguous(deliver); }
  // No more will come: everything is delivered, what is missing below `drawn` is counted.
  void finish(std::uint64_t drawn, const Deliver& deliver);
  // Bit n: event n is stored already, neither to be delivered nor missed (recover).
  void set_stored(std::vector<bool> stored) { stored_ = std::move(stored); }

  // Everything below is delivered or given up.
  std::uint64_t next() const { return next_; }
  std::uint64_t missing() const { return missing_; }  // given up and not come since
  std::uint64_t late() const { return late_; }
  std::uint64_t refused() const { return refused_; }  // twice, or a number nobody drew
  std::size_t waiting() const { return waiting_; }

 private:
  Event& slot(std::uint64_t seq) { return window_[seq & (window_.size() - 1)]; }
  bool present(std::uint64_t seq) { return slot(seq).head.seq == seq; }
  bool is_stored(std::uint64_t seq) const { return seq < stored_.size() && stored_[seq]; }
  bool fits(std::uint64_t seq) const { return seq - next_ < window_.size(); }
  bool widen(std::uint64_t seq);
  void place(const Event& event);
  bool place_overflow();
  bool take_late(std::uint64_t seq);
  void deliver_late(const Deliver& deliver);
  bool deliver_contiguous(const Deliver& deliver);
  void deliver_all_due(const Deliver& deliver);
  void step_over(const Deliver& deliver);
  void skip_to(std::uint64_t seq);

  Limits limits_;
  std::vector<Event> window_;    // event `seq` is in slot seq % size
  std::vector<Event> overflow_;  // came in while the window was at its limit
  bool overflow_sorted_ = true;
  std::vector<Event> late_events_;
  std::map<std::uint64_t, std::uint64_t> skipped_;  // first -> one past the last
  std::vector<bool> stored_;
  std::uint64_t next_ = 1;
  std::uint64_t stalled_since_us_ = 0;  // 0 = not stalled
  std::size_t waiting_ = 0;
  std::uint64_t missing_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace vramscope::collect
