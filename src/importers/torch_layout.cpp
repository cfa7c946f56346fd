#include "importers/torch_layout.h"

#include <iterator>

namespace vramscope::importers {

namespace {

constexpr std::uint64_t kMinBlock = 512, kSmall = 1 << 20;

}  // namespace

std::uint64_t TorchLayout::rounded(std::uint64_t requested) {
  if (requested > ~std::uint64_t{0} - kMinBlock) return requested;
  return requested < kMinBlock ? kMinBlock : (requested + kMinBlock - 1) / kMinBlock * kMinBlock;
}

bool TorchLayout::splits(std::uint64_t size, std::uint64_t remaining) const {
  if (expandable_ || size <= kSmall) return remaining >= kMinBlock;
  return size < max_split_ && remaining > kSmall;
}

void TorchLayout::take_segment(std::uint64_t address, std::uint64_t bytes) {
  segments_[address] = bytes;
  release(address, bytes);
}

void TorchLayout::return_segment(std::uint64_t address, std::uint64_t bytes) {
  segments_.erase(address);
  auto range = free_.upper_bound(address);
  if (range == free_.begin()) return;
  --range;
  const auto [begin, size] = *range;
  if (address < begin || address - begin > size) return;
  free_.erase(range);
  if (address > begin) free_[begin] = address - begin;
  if (size - (address - begin) > bytes) free_[address + bytes] = size - (address - begin) - bytes;
}

std::uint64_t TorchLayout::allocate(std::uint64_t address, std::uint64_t requested) {
  const std::uint64_t size = rounded(requested);
  const auto range = free_.find(address);
  if (range == free_.end() || range->second < size) return size;
  const std::uint64_t available = range->second;
  free_.erase(range);
  if (!splits(size, available - size)) return available;
  free_[address + size] = available - size;
  return size;
}

void TorchLayout::release(std::uint64_t address, std::uint64_t granted) {
  auto [range, fresh] = free_.try_emplace(address, granted);
  if (!fresh) return;
  // Neighbors merge, except across two segments; the parts of an expandable one are mapped side by side and do merge.
  const auto border = [&](std::uint64_t at) { return !expandable_ && segments_.contains(at); };
  if (const auto next = std::next(range); next != free_.end() && next->first - address == granted && !border(next->first)) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range == free_.begin() || border(address)) return;
  if (const auto before = std::prev(range); address - before->first == before->second) {
    before->second += range->second;
    free_.erase(range);
  }
}

}  // namespace vramscope::importers
