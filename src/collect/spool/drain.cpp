#include "collect/spool/drain.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "spool/free_list.h"

namespace vramscope::collect {

using spool::SegmentHeader;
using spool::SegmentState;

// Copies what was published since the last call. False: nothing new, or the segment was reused meanwhile.
bool Drain::copy_new(SegmentHeader* segment, Seen& seen, std::uint32_t& thread) {
  const std::uint64_t generation = segment->generation.load(std::memory_order_acquire);
  if (generation != seen.generation) seen = {generation, 0, sizeof(SegmentHeader), seen.held};
  const std::uint32_t committed = segment->committed.load(std::memory_order_acquire);
  if (committed <= seen.consumed || committed > spool::kSegmentBytes) return false;
  thread = segment->thread;
  const auto* bytes = reinterpret_cast<const std::byte*>(segment);
  copy_.assign(bytes + seen.consumed, bytes + committed);
  // Pairs with the fence after the recorder's increment: new bytes in the copy imply that the new generation is visible here.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (segment->generation.load(std::memory_order_relaxed) != generation) return false;
  seen.consumed = committed;
  return true;
}

std::size_t Drain::parse(std::uint32_t thread, Seen& seen, const Sink& sink) {
  std::size_t records = 0;
  for (std::size_t at = 0; at < copy_.size();) {
    spool::RecordHead head;
    if (copy_.size() - at < spool::kSlotBytes) break;
    std::memcpy(&head, copy_.data() + at, sizeof head);
    const std::size_t bytes = std::size_t{head.slots} * spool::kSlotBytes;
    if (bytes == 0 || bytes > copy_.size() - at) {
      ++damaged_;
      break;
    }
    seen.last_seq = std::max(seen.last_seq, head.seq);
    sink(thread, head, std::span(copy_).subspan(at, bytes));
    ++records;
    at += bytes;
  }
  return records;
}

std::size_t Drain::read(SpoolFile& spool, std::uint32_t index, const Sink& sink) {
  std::uint32_t thread = 0;
  return copy_new(spool.segment(index), seen_[index], thread) ? parse(thread, seen_[index], sink) : 0;
}

// True: it is ours now. Otherwise a thread that ran out of segments was faster; what it overwrites is counted on its side.
bool Drain::hold(SpoolFile& spool, std::uint32_t index) {
  SegmentState sealed = SegmentState::sealed;
  auto& state = spool.segment(index)->state;
  if (!state.compare_exchange_strong(sealed, SegmentState::reading, std::memory_order_acquire) && sealed != SegmentState::reading)
    return false;  // `reading` that we do not hold: a previous collector did
  seen_[index].held = true;
  ++held_;
  return true;
}

std::size_t Drain::pass(SpoolFile& spool, const Sink& sink) {
  const std::uint32_t count = spool.update();
  seen_.resize(std::max<std::size_t>(seen_.size(), count));
  std::size_t records = 0;
  owned_ = 0;
  full_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    const SegmentHeader* segment = spool.segment(i);
    const SegmentState state = segment->state.load(std::memory_order_acquire);
    if (state == SegmentState::free || seen_[i].held) continue;
    if (state == SegmentState::owned) {
      ++owned_;
      records += read(spool, i, sink);
    } else {
      full_.emplace_back(segment->seal.load(std::memory_order_relaxed), i);
    }
  }
  // By age: events then arrive nearly in order, and a full spool is merged without holding it in memory twice.
  std::sort(full_.begin(), full_.end());
  for (const auto& [age, index] : full_)
    if (hold(spool, index)) records += read(spool, index, sink);
  return records;
}

void Drain::give_back(SpoolFile& spool, std::uint64_t stored) {
  for (std::uint32_t i = 0; i < seen_.size() && held_ > 0; ++i) {
    if (!seen_[i].held || seen_[i].last_seq >= stored) continue;
    seen_[i].held = false;
    --held_;
    spool::push_free(spool.header(), *spool.segment(i), i);
  }
}

void Drain::reclaim(SpoolFile& spool, const std::function<bool(std::uint32_t)>& thread_lives) {
  for (std::uint32_t i = 0; i < seen_.size(); ++i) {
    SegmentHeader* segment = spool.segment(i);
    Seen& seen = seen_[i];
    // The owner's name is certain only once it has published something in this generation.
    const bool read_to_the_end = seen.consumed > sizeof(SegmentHeader) &&
                                 seen.generation == segment->generation.load(std::memory_order_acquire) &&
                                 seen.consumed == segment->committed.load(std::memory_order_acquire);
    SegmentState state = SegmentState::owned;
    if (seen.held || segment->state.load(std::memory_order_acquire) != state || !read_to_the_end) continue;
    if (thread_lives(segment->thread)) continue;
    // What it published between our check and its death is read in the next pass: the segment is then found as `reading`.
    if (seen.consumed != segment->committed.load(std::memory_order_acquire)) continue;
    if (!segment->state.compare_exchange_strong(state, SegmentState::reading, std::memory_order_acquire)) continue;
    seen.held = true;
    ++held_;
  }
}

}  // namespace vramscope::collect
