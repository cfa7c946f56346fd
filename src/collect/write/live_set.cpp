#include "collect/write/live_set.h"

#include <algorithm>

namespace vramscope::collect {

void LivePool::alloc(std::uint64_t address, const LiveBlock& block) {
  const auto [entry, fresh] = blocks_.try_emplace(address, block);
  if (!fresh) {
    ++account_.live_twice;
    account_.live -= std::min(account_.live, entry->second.granted);
    entry.value() = block;
  }
  ++account_.allocs;
  account_.live += block.granted;
  account_.peak = std::max(account_.peak, account_.live);
  account_.largest = std::max(account_.largest, block.granted);
}

bool LivePool::free(std::uint64_t address) {
  ++account_.frees;
  const auto entry = blocks_.find(address);
  if (entry == blocks_.end()) {
    ++account_.unmatched_frees;
    return false;
  }
  if (recent_frees_.size() < kRecentFrees) recent_frees_.emplace_back();
  recent_frees_[next_free_++ % kRecentFrees] = {address, entry->second};
  account_.live -= std::min(account_.live, entry->second.granted);
  blocks_.erase(entry);
  return true;
}

const LiveBlock* LivePool::cancel_free(std::uint64_t address) {
  for (std::size_t back = 1; back <= recent_frees_.size(); ++back) {
    Freed& freed = recent_frees_[(next_free_ - back) % kRecentFrees];
    if (freed.address != address) continue;
    freed.address = 0;
    ++account_.cancelled_frees;
    --account_.frees;
    blocks_[address] = freed.block;
    account_.live += freed.block.granted;
    account_.peak = std::max(account_.peak, account_.live);
    return &freed.block;
  }
  return nullptr;
}

void LivePool::region(std::uint64_t address, std::uint64_t bytes, bool returned) {
  if (!returned) {
    if (address != 0) regions_[address] = bytes;  // 0: how much the driver reserved, not where
    account_.regions += bytes;
  } else {
    regions_.erase(address);
    account_.regions -= std::min(account_.regions, bytes);
  }
  account_.regions_peak = std::max(account_.regions_peak, account_.regions);
}

std::uint64_t LivePool::largest_free() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks;
  blocks.reserve(blocks_.size());
  for (const auto& [address, block] : blocks_) blocks.emplace_back(address, block.granted);
  std::sort(blocks.begin(), blocks.end());
  std::uint64_t largest = 0;
  auto next = blocks.begin();
  for (const auto& [begin, bytes] : regions_) {
    std::uint64_t at = begin;
    const std::uint64_t end = begin + bytes;
    while (next != blocks.end() && next->first < begin) ++next;
    for (; next != blocks.end() && next->first < end; ++next) {
      if (next->first > at) largest = std::max(largest, next->first - at);
      at = std::max(at, next->first + next->second);
    }
    if (end > at) largest = std::max(largest, end - at);
  }
  return largest;
}

std::vector<LivePool::Holder> LivePool::holders(std::size_t most) const {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Holder> groups;
  for (const auto& [address, block] : blocks_) {
    Holder& holder = groups[{block.op, block.owner}];
    holder.op = block.op;
    holder.owner = block.owner;
    holder.bytes += block.granted;
    ++holder.blocks;
  }
  std::vector<Holder> sorted;
  for (const auto& [key, holder] : groups) sorted.push_back(holder);
  const auto larger = [](const Holder& a, const Holder& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.op < b.op; };
  std::sort(sorted.begin(), sorted.end(), larger);
  if (sorted.size() > most) sorted.resize(most);
  return sorted;
}

}  // namespace vramscope::collect
