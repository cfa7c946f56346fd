#include "whatif/replay/bfc.h"

#include <algorithm>

namespace vramscope::whatif {
namespace {

Bytes rounded_up(Bytes bytes) { return std::max(kBfcQuantum, (bytes + kBfcQuantum - 1) / kBfcQuantum * kBfcQuantum); }

}  // namespace

BfcAllocator::BfcAllocator(const BfcSettings& settings, const DeviceOptions& device) : Allocator(device), settings_(settings) {
  // Without a limit, a pool that does not grow takes the card.
  if (!settings_.growth && settings_.limit == kUnlimited) settings_.limit = std::min(device.capacity, device.total);
  settings_.limit = std::min(settings_.limit, kLargestDevice);
  most_slack_ = settings_.fragmentation_fraction > 0
                    ? static_cast<Bytes>(settings_.fragmentation_fraction * static_cast<double>(settings_.limit))
                    : kBfcMostSlack;
  step_ = rounded_up(settings_.growth ? std::min(settings_.limit, kBfcFirstRegion) : settings_.limit);
}

bool BfcAllocator::allocate(const Event& request) {
  if (request.block >= owned_.size()) owned_.resize(request.block + 1 + request.block / 2, kNone);
  const Bytes rounded = rounded_up(request.bytes);
  Ref found = find(rounded);
  if (found == kNone && extend(rounded)) found = find(rounded);
  if (found == kNone && settings_.collection && return_free_regions(rounded)) {
    ++counters_.flushes;
    if (extend(rounded)) found = find(rounded);
  }
  owned_[request.block] = found;
  if (found == kNone) {
    ++counters_.failures;
    return false;
  }
  count_allocated(chunks_[found].bytes);
  return true;
}

// Best fit, the lowest address of equal ones. Bins only make the search faster: they partition sizes.
BfcAllocator::Ref BfcAllocator::find(Bytes rounded) {
  const auto at = free_.lower_bound({rounded, 0, 0});
  if (at == free_.end()) return kNone;
  const Ref found = free_.at(at).block;
  free_.erase(at);
  chunks_[found].used = true;
  const Bytes excess = chunks_[found].bytes - rounded;
  if (excess >= rounded || excess >= most_slack_) {
    Chunk rest = chunks_[found];
    rest.used = false;
    rest.address += rounded;
    rest.bytes = excess;
    rest.previous = found;
    const Ref remainder = create(rest);
    if (rest.next != kNone) chunks_[rest.next].previous = remainder;
    chunks_[found].next = remainder;
    chunks_[found].bytes = rounded;
    if (excess > 0) free_.insert(key(remainder));
  }
  return found;
}

bool BfcAllocator::extend(Bytes rounded) {
  const Bytes available = (settings_.limit - std::min(settings_.limit, counters_.reserved)) / kBfcQuantum * kBfcQuantum;
  if (rounded > available) return false;
  bool doubled = false;
  for (; rounded > step_; step_ *= 2) {
    if (step_ > kUnlimited / 2) return false;
    doubled = true;
  }
  Bytes bytes = std::min(step_, available);
  auto address = device_.take(bytes);
  while (!address) {
    constexpr float kLess = 0.9F;  // as in the original, in single precision
    const Bytes less = rounded_up(static_cast<Bytes>(static_cast<float>(bytes) * kLess));
    if (less < rounded || less >= bytes) return false;  // below ten quanta, rounding up makes it no smaller
    bytes = less;
    address = device_.take(bytes);
  }
  if (!doubled) step_ *= 2;
  count_reserved(bytes);
  Chunk chunk;
  chunk.address = *address;
  chunk.bytes = bytes;
  const Ref ref = create(chunk);
  // They are returned in the order of their addresses.
  regions_.insert(std::ranges::upper_bound(regions_, *address, {}, &Region::address), {*address, bytes, ref});
  free_.insert(key(ref));
  return true;
}

bool BfcAllocator::return_free_regions(Bytes rounded) {
  const auto is_free = [&](const Region& r) { return !chunks_[r.first].used && chunks_[r.first].bytes == r.bytes; };
  device_.spend(regions_.size());
  Bytes unused = 0;
  for (const Region& region : regions_)
    if (is_free(region)) unused += region.bytes;
  if (unused == 0 || rounded > settings_.limit - counters_.reserved + unused) return false;
  std::erase_if(regions_, [&](const Region& region) {
    if (!is_free(region)) return false;
    free_.erase(key(region.first));
    destroy(region.first);
    device_.give_back(region.address, region.bytes);
    counters_.reserved -= region.bytes;
    return true;
  });
  return true;
}

void BfcAllocator::free(std::uint32_t block) {
  const Ref ref = block < owned_.size() ? owned_[block] : kNone;
  if (ref == kNone) return;
  owned_[block] = kNone;
  Chunk& chunk = chunks_[ref];
  counters_.allocated -= chunk.bytes;
  chunk.used = false;
  Ref left = ref;
  if (const Ref next = chunk.next; next != kNone && !chunks_[next].used) {
    free_.erase(key(next));
    merge(ref, next);
  }
  if (const Ref previous = chunk.previous; previous != kNone && !chunks_[previous].used) {
    free_.erase(key(previous));
    merge(previous, ref);
    left = previous;
  }
  free_.insert(key(left));
}

// Chunks of different regions are never neighbors.
void BfcAllocator::merge(Ref into, Ref other) {
  chunks_[into].bytes += chunks_[other].bytes;
  chunks_[into].next = chunks_[other].next;
  if (chunks_[into].next != kNone) chunks_[chunks_[into].next].previous = into;
  destroy(other);
}

BfcAllocator::Ref BfcAllocator::create(const Chunk& chunk) {
  if (unused_.empty()) {
    chunks_.push_back(chunk);
    return static_cast<Ref>(chunks_.size() - 1);
  }
  const Ref ref = unused_.back();
  unused_.pop_back();
  chunks_[ref] = chunk;
  return ref;
}

void BfcAllocator::destroy(Ref ref) {
  chunks_[ref].exists = false;
  unused_.push_back(ref);
}

Bytes BfcAllocator::largest_free() const { return free_.empty() ? 0 : free_.at(free_.previous(free_.end())).major; }

void BfcAllocator::for_each_piece(const std::function<void(const Piece&)>& visit) const {
  for (const Region& region : regions_)
    for (Ref ref = region.first; ref != kNone; ref = chunks_[ref].next)
      visit({chunks_[ref].address, chunks_[ref].bytes, chunks_[ref].used, true, ref == region.first, false});
}

}  // namespace vramscope::whatif
