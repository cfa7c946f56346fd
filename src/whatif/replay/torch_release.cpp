// How PyTorch's allocator returns memory: collection by age, oversize blocks, and the flush of everything unused.
#include "whatif/replay/torch.h"

#include <algorithm>
#include <utility>

namespace vramscope::whatif {

void TorchAllocator::collect() {
  const auto threshold = static_cast<Bytes>(settings_.collection_threshold * static_cast<double>(limit_));
  if (counters_.reserved <= threshold) return;
  const Bytes target = counters_.reserved - threshold;
  Pool& pool = pools_[0];  // no other pool is collected
  const auto age = [&](const Block& b) { return pool.searches - b.searches; };
  std::uint64_t ages = 0, count = 0;
  for (auto at = pool.free.begin(); at != pool.free.end(); at = pool.free.next(at)) {
    device_.spend(1);
    const Block& b = blocks_[pool.free.at(at).block];
    if (!b.is_whole()) continue;
    ages += age(b);
    ++count;
  }
  Bytes reclaimed = 0;
  for (bool freed = true; reclaimed < target && freed && count > 0;) {
    const double average = static_cast<double>(ages) / static_cast<double>(count);
    freed = false;
    std::vector<Ref> old;
    for (auto at = pool.free.begin(); at != pool.free.end(); at = pool.free.next(at)) {
      device_.spend(1);
      const Block& b = blocks_[pool.free.at(at).block];
      if (b.is_whole() && !b.expandable && static_cast<double>(age(b)) >= average) old.push_back(pool.free.at(at).block);
    }
    for (const Ref ref : old) {
      freed = true;
      reclaimed += blocks_[ref].bytes;
      ages -= age(blocks_[ref]);
      --count;
      release(ref);
    }
  }
}

// Frees one block that is large enough, or the largest ones until their sum is.
bool TorchAllocator::release_oversize(const Request& request) {
  if (settings_.max_split == kUnlimited) return false;
  Pool& pool = pools_[request.pool];
  const Bytes wanted = std::max(request.bytes, settings_.max_split);
  const auto block = [&](SortedBlocks::Place place) -> const Block& { return blocks_[pool.free.at(place).block]; };
  const auto at = pool.free.lower_bound({major_of(request.stream, wanted), 0, 0});
  if (at != pool.free.end() && block(at).stream == request.stream && !block(at).expandable) {
    release(pool.free.at(at).block);
    return true;
  }
  std::vector<Ref> largest;
  Bytes sum = 0;
  for (auto place = at; place != pool.free.begin() && sum < wanted;) {
    place = pool.free.previous(place);
    device_.spend(1);
    const Block& b = block(place);
    if (b.bytes < settings_.max_split || b.stream != request.stream) break;
    if (b.expandable) continue;
    sum += b.bytes;
    largest.push_back(pool.free.at(place).block);
  }
  for (const Ref ref : largest) release(ref);
  return sum >= wanted;
}

void TorchAllocator::release_all() {
  // Nothing waits for the device during a capture, so that only pools that no capture needs can be released.
  if (captures_ == 0) {
    // Waiting for the device completes every free.
    for (const std::uint32_t block : held_) return_block(std::exchange(owned_[block], kNone));
    held_.clear();
    release_pool(pools_[0]);
    release_pool(pools_[1]);
  }
  for (std::size_t i = 2; i + 1 < pools_.size(); i += 2) {
    if (!pools_[i].retired) continue;
    release_pool(pools_[i + 1]);
    release_pool(pools_[i]);
  }
}

void TorchAllocator::release_pool(Pool& pool) {
  std::vector<Ref> whole, expandable;
  for (auto at = pool.free.begin(); at != pool.free.end(); at = pool.free.next(at)) {
    device_.spend(1);
    const Ref ref = pool.free.at(at).block;
    if (blocks_[ref].expandable)
      expandable.push_back(ref);
    else if (blocks_[ref].is_whole())
      whole.push_back(ref);
  }
  for (const Ref ref : whole) release(ref);
  for (const Ref ref : expandable) unmap(ref);
}

void TorchAllocator::release(Ref ref) {
  erase_free(ref);
  device_.give_back(blocks_[ref].address, blocks_[ref].bytes);
  counters_.reserved -= blocks_[ref].bytes;
  destroy(ref);
}

// Only pages that lie wholly inside the block go back; what is left at its ends stays free.
void TorchAllocator::unmap(Ref ref) {
  Pool& pool = pools_[blocks_[ref].pool];
  const Bytes page = page_of(pool);
  const std::uint64_t base = blocks_[ref].base, start = blocks_[ref].address - base;
  const std::uint64_t begin = (start + page - 1) / page * page, end = (start + blocks_[ref].bytes) / page * page;
  if (begin >= end) return;
  erase_free(ref);
  const auto keep = [&](std::uint64_t from, Bytes bytes) {
    Block part = blocks_[ref];
    part.address = base + from;
    part.bytes = bytes;
    return create(part);
  };
  if (begin > start) {
    const Ref before = keep(start, begin - start);
    link_after(before, blocks_[ref].previous, ref);
    insert_free(before);
  }
  if (const std::uint64_t stop = start + blocks_[ref].bytes; stop > end) {
    const Ref after = keep(end, stop - end);
    link_after(after, ref, blocks_[ref].next);
    insert_free(after);
  }
  blocks_[ref].address = base + begin;
  blocks_[ref].bytes = end - begin;
  blocks_[ref].mapped = false;
  device_.give_back(base + begin, end - begin);
  counters_.reserved -= end - begin;
  merge(ref, blocks_[ref].previous);
  merge(ref, blocks_[ref].next);
  pool.unmapped.insert(unmapped_key(ref));
  if (blocks_[ref].is_whole()) {
    pool.unmapped.erase(unmapped_key(ref));
    destroy(ref);
  }
}

}  // namespace vramscope::whatif
