#include "collect/order/merger.h"

#include <algorithm>

namespace vramscope::collect {

namespace {
constexpr std::size_t kFirstWindow = 4096;
}

Merger::Merger(Limits limits) : limits_(limits), window_(std::min(kFirstWindow, limits.events)), taken_(window_.size()) {}

void Merger::add(const Event& event, std::uint64_t drawn) {
  const std::uint64_t seq = event.head.seq;
  if (seq == 0 || seq >= drawn) {
    ++refused_;
  } else if (stored_.contains(seq)) {
    return;
  } else if (seq < next_) {
    if (take_late(seq))
      late_events_.push_back(event);
    else
      ++refused_;
  } else if (fits(seq) || widen(seq)) {
    place(event);
  } else {
    overflow_.push_back(event);
    overflow_sorted_ = false;
    ++waiting_;
  }
}

void Merger::place(const Event& event) {
  if (present(event.head.seq)) {
    ++refused_;
    return;
  }
  slot(event.head.seq) = event;
  taken_.set(event.head.seq & (window_.size() - 1));
  ++waiting_;
}

bool Merger::widen(std::uint64_t seq) {
  if (seq - next_ >= limits_.events) return false;
  std::vector<Event> old(window_.size());
  old.swap(window_);
  while (!fits(seq)) window_.resize(window_.size() * 2);
  taken_ = Occupancy(window_.size());
  for (const Event& event : old) {
    if (event.head.seq < next_) continue;
    slot(event.head.seq) = event;
    taken_.set(event.head.seq & (window_.size() - 1));
  }
  return true;
}

// True: at least one found its place. Sorted once per batch, lowest last: what fits is taken from the end.
bool Merger::place_overflow() {
  if (!overflow_sorted_) {
    std::sort(overflow_.begin(), overflow_.end(), [](const Event& a, const Event& b) { return a.head.seq > b.head.seq; });
    overflow_sorted_ = true;
  }
  bool placed = false;
  while (!overflow_.empty() && (overflow_.back().head.seq < next_ || fits(overflow_.back().head.seq))) {
    const Event event = overflow_.back();
    overflow_.pop_back();
    --waiting_;
    add(event, event.head.seq + 1);
    placed = true;
  }
  return placed;
}

bool Merger::take_late(std::uint64_t seq) {
  auto range = skipped_.upper_bound(seq);
  if (range == skipped_.begin()) return false;
  --range;
  const auto [first, end] = *range;
  if (seq >= end) return false;
  skipped_.erase(range);
  if (first < seq) skipped_[first] = seq;
  if (seq + 1 < end) skipped_[seq + 1] = end;
  --missing_;
  ++late_;
  return true;
}

void Merger::deliver_late(const Deliver& deliver) {
  for (const Event& event : late_events_) deliver(event, true, true);
  late_events_.clear();
}

void Merger::delivered() {
  taken_.clear(next_ & (window_.size() - 1));
  ++next_;
  --waiting_;
}

// The number of the first event in the window; one past the window if there is none.
std::uint64_t Merger::first_waiting() const {
  const std::size_t begin = next_ & (window_.size() - 1);
  if (const std::size_t slot = taken_.next(begin); slot < window_.size()) return next_ + (slot - begin);
  const std::size_t slot = taken_.next(0);
  return next_ + (slot < begin ? window_.size() - begin + slot : window_.size());
}

// False: the next event is there, but something that it needs is not.
bool Merger::deliver_contiguous(const Deliver& deliver) {
  for (;;) {
    next_ = stored_.first_outside(next_);
    if (!present(next_)) return true;
    if (!deliver(slot(next_), false, false)) return false;
    delivered();
    stalled_since_us_ = 0;
  }
}

void Merger::deliver_all_due(const Deliver& deliver) {
  do
    if (!deliver_contiguous(deliver)) return;
  while (place_overflow());
}

void Merger::skip_to(std::uint64_t seq) {
  // By ranges: a damaged number must not cost a step for each one below it.
  while (next_ < seq) {
    next_ = std::min(stored_.first_outside(next_), seq);
    const std::uint64_t end = std::min(stored_.first_inside(next_), seq);
    if (next_ == end) continue;
    skipped_[next_] = end;
    missing_ += end - next_;
    next_ = end;
  }
}

// Stops waiting for whatever delays the next event.
void Merger::step_over(const Deliver& deliver) {
  stalled_since_us_ = 0;
  if (present(next_)) {
    deliver(slot(next_), false, true);
    delivered();
    return;
  }
  std::uint64_t seq = first_waiting();
  if (seq == next_ + window_.size() && !overflow_.empty())
    seq = overflow_.back().head.seq;  // sorted: place_overflow() ran before
  skip_to(seq);
}

void Merger::release(std::uint64_t now_us, const Deliver& deliver) {
  deliver_late(deliver);
  deliver_all_due(deliver);
  while (waiting_ > 0) {
    if (stalled_since_us_ == 0) stalled_since_us_ = now_us;
    if (overflow_.empty() && now_us - stalled_since_us_ < limits_.wait_us) return;
    step_over(deliver);
    deliver_all_due(deliver);
  }
  stalled_since_us_ = 0;
}

void Merger::finish(std::uint64_t drawn, const Deliver& deliver) {
  deliver_late(deliver);
  deliver_all_due(deliver);
  while (waiting_ > 0) {
    step_over(deliver);
    deliver_all_due(deliver);
  }
  if (next_ < drawn) skip_to(drawn);
}

}  // namespace vramscope::collect
