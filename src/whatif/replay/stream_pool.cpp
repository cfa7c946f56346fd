#include "whatif/replay/stream_pool.h"

#include <algorithm>

namespace vramscope::whatif {
namespace {

constexpr Bytes kQuantum = 512;

std::uint64_t up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

bool StreamPool::allocate(const Event& request) {
  if (request.block >= owned_.size()) owned_.resize(request.block + 1 + request.block / 2);
  const Bytes rounded = std::max(kQuantum, up(request.bytes, kQuantum));
  auto at = by_size_.lower_bound({rounded, 0, 0});
  if (at == by_size_.end()) {
    if (!extend(rounded)) {
      ++counters_.failures;
      owned_[request.block] = {};
      return false;
    }
    at = by_size_.lower_bound({rounded, 0, 0});
  }
  const std::uint64_t address = by_size_.at(at).minor;
  const Bytes hole = by_size_.at(at).major;
  remove_hole(address, hole);
  if (hole > rounded) add_hole(address + rounded, hole - rounded);
  owned_[request.block] = {address, rounded};
  count_allocated(rounded);
  return true;
}

// Grows at the end, where a hole may already be. Wholly free pages elsewhere move there before new ones are taken.
bool StreamPool::extend(Bytes rounded) {
  const auto last = holes_.empty() ? holes_.end() : std::prev(holes_.end());
  const Bytes tail = last != holes_.end() && last->first + last->second == end_ ? last->second : 0;
  const std::uint64_t pages = up(rounded - tail, settings_.page) / settings_.page;
  const std::uint64_t moved = take_free_pages(pages, true);
  if (pages > moved) {
    const Bytes bytes = (pages - moved) * settings_.page;
    if (!device_.take(bytes)) {
      // Nothing was moved as far as others can see: the pages are free at the end instead.
      if (moved > 0) add_hole(end_, moved * settings_.page);
      end_ += moved * settings_.page;
      return false;
    }
    count_reserved(bytes);
  }
  add_hole(end_, pages * settings_.page);
  end_ += pages * settings_.page;
  return true;
}

std::uint64_t StreamPool::take_free_pages(std::uint64_t most, bool spare_tail) {
  std::uint64_t taken = 0;
  for (auto at = paged_.begin(); at != paged_.end() && taken < most;) {
    const std::uint64_t address = *at++;
    const Bytes bytes = holes_.at(address);
    if (spare_tail && address + bytes == end_) continue;
    const std::uint64_t first = up(address, settings_.page);
    const std::uint64_t pages = std::min(most - taken, pages_in(address, bytes));
    const std::uint64_t gone = first + pages * settings_.page;
    remove_hole(address, bytes);
    if (first > address) add_hole(address, first - address);
    if (address + bytes > gone) add_hole(gone, address + bytes - gone);
    taken += pages;
    at = paged_.upper_bound(gone);  // the rest of the same hole has no more to give
  }
  return taken;
}

void StreamPool::trim(Bytes keep) {
  const Bytes kept = keep / settings_.page * settings_.page;
  if (counters_.reserved <= kept) return;
  const std::uint64_t pages = take_free_pages((counters_.reserved - kept) / settings_.page, false);
  if (pages == 0) return;
  device_.give_back(0, pages * settings_.page);
  counters_.reserved -= pages * settings_.page;
}

void StreamPool::free(std::uint32_t block) {
  if (block >= owned_.size() || owned_[block].bytes == 0) return;
  const Extent extent = owned_[block];
  owned_[block] = {};
  counters_.allocated -= extent.bytes;
  add_hole(extent.address, extent.bytes);
}

void StreamPool::control(const Event& event) {
  if (event.what == What::synchronize) trim(settings_.release_threshold);
  if (event.what == What::empty_cache) trim(0);
}

void StreamPool::add_hole(std::uint64_t address, Bytes bytes) {
  const auto next = holes_.lower_bound(address);
  if (next != holes_.end() && address + bytes == next->first) {
    bytes += next->second;
    remove_hole(next->first, next->second);
  }
  if (const auto after = holes_.lower_bound(address); after != holes_.begin()) {
    const auto [start, length] = *std::prev(after);
    if (start + length == address) {
      remove_hole(start, length);
      address = start;
      bytes += length;
    }
  }
  holes_.emplace(address, bytes);
  by_size_.insert({bytes, address, 0});
  if (pages_in(address, bytes) > 0) paged_.insert(address);
}

void StreamPool::remove_hole(std::uint64_t address, Bytes bytes) {
  holes_.erase(address);
  by_size_.erase({bytes, address, 0});
  paged_.erase(address);
}

std::uint64_t StreamPool::pages_in(std::uint64_t address, Bytes bytes) const {
  const std::uint64_t first = up(address, settings_.page), last = (address + bytes) / settings_.page * settings_.page;
  return first < last ? (last - first) / settings_.page : 0;
}

void StreamPool::for_each_piece(const std::function<void(const Piece&)>& visit) const {
  for (const auto& [address, bytes] : holes_) visit({address, bytes, false, true, false, false});
  for (const Extent& extent : owned_)
    if (extent.bytes != 0) visit({extent.address, extent.bytes, true, true, false, false});
}

}  // namespace vramscope::whatif
