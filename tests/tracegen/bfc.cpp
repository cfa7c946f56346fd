#include "bfc.h"

#include <algorithm>

namespace vramscope::tracegen {
namespace {
constexpr std::uint64_t kQuantum = 256;
constexpr std::uint64_t kMostSlack = 128u << 20;
}  // namespace

std::optional<Bfc::Region> Bfc::extend(std::uint64_t rounded) {
  std::uint64_t available = (std::min(options_.limit, options_.device) - pool_) / kQuantum * kQuantum;
  if (rounded > available) return std::nullopt;
  std::uint64_t bytes = available;
  if (options_.growth) {
    bool doubled = false;
    while (next_region_ < rounded) {
      next_region_ *= 2;
      doubled = true;
    }
    bytes = std::min(next_region_, available);
    if (!doubled) next_region_ *= 2;
  }
  Region region{next_address_, bytes};
  next_address_ += bytes + (16u << 20);  // regions do not touch
  pool_ += bytes;
  chunks_[region.address] = {bytes, region.address, false};
  free_.insert({bytes, region.address});
  return region;
}

std::optional<Bfc::Given> Bfc::allocate(std::uint64_t requested) {
  std::uint64_t rounded = std::max<std::uint64_t>(kQuantum, (requested + kQuantum - 1) / kQuantum * kQuantum);
  Given out{};
  auto it = free_.lower_bound({rounded, 0});
  if (it == free_.end()) {
    out.grown = extend(rounded);
    if (!out.grown) return std::nullopt;
    it = free_.lower_bound({rounded, 0});
  }
  auto [bytes, address] = *it;
  free_.erase(it);
  Chunk& chunk = chunks_[address];
  chunk.used = true;
  if ((options_.exact && bytes > rounded) || bytes >= 2 * rounded || bytes - rounded >= kMostSlack) {
    chunks_[address + rounded] = {bytes - rounded, chunk.region, false};
    free_.insert({bytes - rounded, address + rounded});
    chunk.bytes = rounded;
  }
  live_ += chunk.bytes;
  out.address = address;
  out.granted = chunk.bytes;
  return out;
}

void Bfc::free(std::uint64_t address) {
  auto it = chunks_.find(address);
  live_ -= it->second.bytes;
  it->second.used = false;
  auto next = std::next(it);
  if (next != chunks_.end() && !next->second.used && next->second.region == it->second.region) {
    free_.erase({next->second.bytes, next->first});
    it->second.bytes += next->second.bytes;
    chunks_.erase(next);
  }
  if (it != chunks_.begin()) {
    auto before = std::prev(it);
    if (!before->second.used && before->second.region == it->second.region) {
      free_.erase({before->second.bytes, before->first});
      before->second.bytes += it->second.bytes;
      chunks_.erase(it);
      it = before;
    }
  }
  free_.insert({it->second.bytes, it->first});
}

}  // namespace vramscope::tracegen
