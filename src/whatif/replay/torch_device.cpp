// How PyTorch's allocator takes memory: segments, or pages of expandable segments.
#include "whatif/replay/torch.h"

#include <algorithm>

namespace vramscope::whatif {

TorchAllocator::Ref TorchAllocator::grow(const Request& request) {
  // The size of a segment counts even if pages are mapped: a request may fail although it needs fewer bytes.
  if (limit_ != 0 && counters_.reserved + request.segment > limit_) return kNone;
  if (settings_.expandable) return grow_expandable(request);
  const auto address = device_.take(request.segment);
  if (!address) return kNone;
  count_reserved(request.segment);
  Block block;
  block.address = block.base = *address;
  block.bytes = request.segment;
  block.stream = request.stream;
  block.pool = request.pool;
  return create(block);
}

TorchAllocator::Ref TorchAllocator::grow_expandable(const Request& request) {
  Ref candidate = room_for(request);
  if (candidate == kNone) return kNone;
  if (!blocks_[candidate].mapped && !map(candidate, std::min(blocks_[candidate].bytes, request.bytes))) return kNone;
  while (blocks_[candidate].bytes < request.bytes) {
    const Ref next = blocks_[candidate].next;
    // Merges with the candidate, and is the candidate then.
    if (!map(next, std::min(request.bytes - blocks_[candidate].bytes, blocks_[next].bytes))) return kNone;
    candidate = next;
  }
  erase_free(candidate);
  return candidate;
}

// The lowest chain of free and unmapped neighbors that is long enough; a new range of addresses if there is none. kNone: no
// range is that long.
TorchAllocator::Ref TorchAllocator::room_for(const Request& request) {
  Pool& pool = pools_[request.pool];
  for (auto at = pool.unmapped.lower_bound({request.stream, 0, 0});
       at != pool.unmapped.end() && pool.unmapped.at(at).major == request.stream; at = pool.unmapped.next(at)) {
    device_.spend(1);
    Ref candidate = pool.unmapped.at(at).block;
    const Ref before = blocks_[candidate].previous;
    if (before != kNone && blocks_[before].is_free()) candidate = before;
    if (has_room(candidate, request.bytes)) return candidate;
  }
  const Bytes page = page_of(pool), wanted = device_.total() + device_.total() / 8;
  Block range;
  range.bytes = (wanted + page - 1) / page * page;
  if (range.bytes < request.bytes) return kNone;
  range.address = range.base = device_.reserve_addresses();
  range.stream = request.stream;
  range.pool = request.pool;
  range.mapped = false;
  range.expandable = true;
  const Ref ref = create(range);
  pool.unmapped.insert(unmapped_key(ref));
  return ref;
}

bool TorchAllocator::has_room(Ref from, Bytes wanted) const {
  Bytes bytes = 0;
  for (Ref at = from; bytes < wanted && at != kNone && blocks_[at].is_free(); at = blocks_[at].next) {
    device_.spend(1);
    bytes += blocks_[at].bytes;
  }
  return bytes >= wanted;
}

bool TorchAllocator::map(Ref ref, Bytes bytes) {
  Pool& pool = pools_[blocks_[ref].pool];
  const Bytes page = page_of(pool), mapped = (bytes + page - 1) / page * page;
  pool.unmapped.erase(unmapped_key(ref));
  if (blocks_[ref].is_whole()) blocks_[ref].address = blocks_[ref].base = device_.recorded_or(blocks_[ref].base);
  if (!device_.map(blocks_[ref].address, mapped)) {
    pool.unmapped.insert(unmapped_key(ref));
    return false;
  }
  blocks_[ref].mapped = true;
  if (mapped < blocks_[ref].bytes) {
    Block rest = blocks_[ref];
    rest.mapped = false;
    rest.address += mapped;
    rest.bytes -= mapped;
    const Ref remaining = create(rest);
    link_after(remaining, ref, blocks_[ref].next);
    pool.unmapped.insert(unmapped_key(remaining));
    blocks_[ref].bytes = mapped;
  }
  merge(ref, blocks_[ref].previous);
  merge(ref, blocks_[ref].next);
  insert_free(ref);
  count_reserved(mapped);
  return true;
}

}  // namespace vramscope::whatif
