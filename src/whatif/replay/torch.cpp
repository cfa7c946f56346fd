// Search, split, free and merge.
#include "whatif/replay/torch.h"

#include <algorithm>

namespace vramscope::whatif {

TorchAllocator::TorchAllocator(const TorchSettings& settings, const DeviceOptions& device)
    : Allocator(device), settings_(settings), ties_(settings.ties()), limit_(settings.limit) {
  if (limit_ == 0 && settings.memory_fraction < 1)
    limit_ = static_cast<Bytes>(settings.memory_fraction * static_cast<double>(device.total));
  pools_.resize(2);
  pools_[1].small = true;
}

bool TorchAllocator::allocate(const Event& event) {
  if (event.block >= owned_.size()) owned_.resize(event.block + 1 + event.block / 2, kNone);
  const Bytes rounded = settings_.rounded(event.bytes);
  const Request request{rounded, settings_.segment_for(rounded), event.stream, pool_for(event.pool, rounded <= kTorchSmall)};
  Ref found = search(request);
  if (found == kNone) {
    if (counts_ages()) collect();
    found = grow(request);
    if (found == kNone && release_oversize(request)) found = grow(request);
    if (found == kNone && captures_ == 0) {
      release_all();
      ++counters_.flushes;
      found = grow(request);
    }
  }
  if (found == kNone) {
    ++counters_.failures;
    owned_[event.block] = kNone;
    return false;
  }
  owned_[event.block] = hand_out(found, rounded);
  return true;
}

TorchAllocator::Ref TorchAllocator::search(const Request& request) {
  Pool& pool = pools_[request.pool];
  if (counts_ages()) ++pool.searches;
  auto at = pool.free.lower_bound({major_of(request.stream, request.bytes), 0, 0});
  const auto usable = [&](SortedBlocks::Place place) {
    return place != pool.free.end() && stream_of(pool.free.at(place)) == request.stream;
  };
  if (!usable(at)) return kNone;
  const auto block = [&](SortedBlocks::Place place) -> const Block& { return blocks_[pool.free.at(place).block]; };
  if (block(at).expandable) {
    if (settings_.expandable) {
      // The size that the block can grow to counts, so that the growing end of a segment is used last.
      const auto reach = [&](SortedBlocks::Place place) {
        const Block& b = block(place);
        return b.bytes + (b.next != kNone && !blocks_[b.next].mapped ? blocks_[b.next].bytes : 0);
      };
      for (auto next = pool.free.next(at); block(at).expandable && usable(next) && reach(next) < reach(at);
           next = pool.free.next(next)) {
        device_.spend(1);
        at = next;
      }
    } else {
      do {
        device_.spend(1);
        at = pool.free.next(at);
      } while (usable(at) && block(at).expandable);
      if (!usable(at)) return kNone;
    }
  }
  if (!fits_oversize_rules(request.bytes, block(at).bytes)) return kNone;
  const Ref found = pool.free.at(at).block;
  pool.free.erase(at);
  return found;
}

bool TorchAllocator::fits_oversize_rules(Bytes wanted, Bytes found) const {
  if (wanted < settings_.max_split) return found < settings_.max_split;
  return found < wanted + settings_.oversize_slack;
}

bool TorchAllocator::should_split(const Block& block, Bytes wanted) const {
  const Bytes remainder = block.bytes - wanted;
  if (pools_[block.pool].small || settings_.expandable) return remainder >= kTorchQuantum;
  return wanted < settings_.max_split && remainder > kTorchSmall;
}

// The request gets the low part. The remainder stays the same block object, which matters for ties in 2.12.
TorchAllocator::Ref TorchAllocator::hand_out(Ref found, Bytes wanted) {
  Ref out = found;
  if (should_split(blocks_[found], wanted)) {
    Block front = blocks_[found];
    front.bytes = wanted;
    out = create(front);
    link_after(out, blocks_[found].previous, found);
    blocks_[found].address += wanted;
    blocks_[found].bytes -= wanted;
    insert_free(found);
  }
  blocks_[out].used = true;
  count_allocated(blocks_[out].bytes);
  return out;
}

void TorchAllocator::free(std::uint32_t block) {
  const Ref ref = block < owned_.size() ? owned_[block] : kNone;
  if (ref == kNone) return;
  if (blocks_[ref].held) {
    device_.spend(held_.size());
    std::erase(held_, block);
  } else {
    counters_.allocated -= blocks_[ref].bytes;
  }
  owned_[block] = kNone;
  return_block(ref);
}

void TorchAllocator::hold(std::uint32_t block) {
  const Ref ref = block < owned_.size() ? owned_[block] : kNone;
  if (ref == kNone || blocks_[ref].held) return;
  counters_.allocated -= blocks_[ref].bytes;
  blocks_[ref].used = false;
  blocks_[ref].held = true;
  held_.push_back(block);
}

void TorchAllocator::return_block(Ref ref) {
  blocks_[ref].used = blocks_[ref].held = false;
  merge(ref, blocks_[ref].previous);
  merge(ref, blocks_[ref].next);
  insert_free(ref);
}

bool TorchAllocator::merge(Ref into, Ref neighbor) {
  if (neighbor == kNone) return false;
  Block& a = blocks_[into];
  Block& b = blocks_[neighbor];
  if (!b.is_free() || a.mapped != b.mapped) return false;
  if (b.mapped)
    erase_free(neighbor);
  else
    pools_[b.pool].unmapped.erase(unmapped_key(neighbor));
  if (a.previous == neighbor) {
    a.address = b.address;
    a.previous = b.previous;
    if (a.previous != kNone) blocks_[a.previous].next = into;
  } else {
    a.next = b.next;
    if (a.next != kNone) blocks_[a.next].previous = into;
  }
  a.bytes += b.bytes;
  destroy(neighbor);
  return true;
}

void TorchAllocator::control(const Event& event) {
  switch (event.what) {
    case What::empty_cache:
      release_all();
      return;
    case What::limit:
      limit_ = event.bytes;
      return;
    case What::begin_capture:
      ++captures_;
      return;
    case What::end_capture:
      captures_ = std::max(0, captures_ - 1);
      return;
    case What::retire_pool:
      if (const auto pair = private_pools_.find(event.pool); pair != private_pools_.end())
        pools_[pair->second].retired = pools_[pair->second + 1u].retired = true;
      return;
    default:
      return;
  }
}

TorchAllocator::Ref TorchAllocator::create(const Block& block) {
  Ref ref = static_cast<Ref>(blocks_.size());
  if (unused_.empty()) {
    blocks_.push_back(block);
  } else {
    ref = unused_.back();
    unused_.pop_back();
    blocks_[ref] = block;
  }
  // Parts of a segment inherit its number.
  if (blocks_[ref].created == 0 || ties_ != Ties::segment) blocks_[ref].created = ++created_;
  return ref;
}

void TorchAllocator::destroy(Ref ref) {
  blocks_[ref].exists = false;
  unused_.push_back(ref);
}

void TorchAllocator::link_after(Ref ref, Ref previous, Ref next) {
  blocks_[ref].previous = previous;
  blocks_[ref].next = next;
  if (previous != kNone) blocks_[previous].next = ref;
  if (next != kNone) blocks_[next].previous = ref;
}

std::uint64_t TorchAllocator::tie_key(const Block& b) const {
  constexpr unsigned kPlaceBits = 38;  // enough for the quanta of a segment: 9/8 of the largest device
  switch (ties_) {
    case Ties::block:
      return b.created;
    case Ties::segment:
      return b.created << kPlaceBits | (b.address - b.base) / kTorchQuantum;
    case Ties::address:
      break;
  }
  return b.address;
}

BlockKey TorchAllocator::free_key(Ref ref) const {
  const Block& b = blocks_[ref];
  return {major_of(b.stream, b.bytes), tie_key(b), ref};
}

BlockKey TorchAllocator::unmapped_key(Ref ref) const { return {blocks_[ref].stream, blocks_[ref].address, ref}; }

void TorchAllocator::insert_free(Ref ref) {
  Pool& pool = pools_[blocks_[ref].pool];
  blocks_[ref].searches = pool.searches;
  pool.free.insert(free_key(ref));
}

std::uint16_t TorchAllocator::pool_for(std::uint8_t private_pool, bool small) {
  std::uint16_t first = 0;
  if (private_pool != 0) {
    const auto [at, is_new] = private_pools_.try_emplace(private_pool, static_cast<std::uint16_t>(pools_.size()));
    first = at->second;
    if (is_new) {
      pools_.resize(pools_.size() + 2);
      pools_.back().small = true;
    }
  }
  return static_cast<std::uint16_t>(first + (small ? 1 : 0));
}

void TorchAllocator::for_each_piece(const std::function<void(const Piece&)>& visit) const {
  for (const Block& first : blocks_) {
    if (!first.exists || first.previous != kNone) continue;
    for (const Block* b = &first; b != nullptr; b = b->next != kNone ? &blocks_[b->next] : nullptr)
      visit({b->address, b->bytes, b->used, b->mapped, b == &first, b->held});
  }
}

}  // namespace vramscope::whatif
