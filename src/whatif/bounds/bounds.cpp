#include "whatif/bounds/bounds.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "whatif/replay/replay.h"

namespace vramscope::whatif {
namespace {

Bytes rounded(Bytes bytes, Bytes quantum) {
  return std::max(quantum, (std::min(bytes, kLargestDevice) + quantum - 1) / quantum * quantum);
}

struct Peak {
  Bytes now = 0, most = 0;
  void add(Bytes bytes) { most = std::max(most, now += bytes); }
};

enum class Gap : std::uint8_t { smallest, first };

struct Placed {
  Bytes offset, end;
  std::size_t block;
};

// The offset for a block among those that are placed, which are sorted by offset.
Bytes offset_for(const Interval& block, std::span<const Interval> blocks, const std::vector<Placed>& placed, Gap gap) {
  Bytes reach = 0, best = 0, best_gap = kUnlimited;
  for (const Placed& other : placed) {
    if (blocks[other.block].from >= block.to || blocks[other.block].to <= block.from) continue;
    if (other.offset >= reach + block.bytes && other.offset - reach < best_gap) {
      best = reach;
      best_gap = other.offset - reach;
      if (gap == Gap::first) return best;
    }
    reach = std::max(reach, other.end);
  }
  return best_gap == kUnlimited ? reach : best;
}

Packing place(std::span<const Interval> blocks, const std::vector<std::size_t>& order, Gap gap) {
  Packing out{0, std::vector<Bytes>(blocks.size())};
  std::vector<Placed> placed;
  placed.reserve(blocks.size());
  for (const std::size_t i : order) {
    const Bytes offset = offset_for(blocks[i], blocks, placed, gap);
    const auto at = std::ranges::upper_bound(placed, offset, {}, &Placed::offset);
    placed.insert(at, {offset, offset + blocks[i].bytes, i});
    out.offsets[i] = offset;
    out.height = std::max(out.height, offset + blocks[i].bytes);
  }
  return out;
}

Bytes live_peak(std::span<const Interval> blocks) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> changes;
  for (const Interval& b : blocks) {
    changes.emplace_back(b.from, static_cast<std::int64_t>(b.bytes));
    changes.emplace_back(b.to, -static_cast<std::int64_t>(b.bytes));
  }
  std::ranges::sort(changes);  // at the same position, frees come first
  std::int64_t now = 0, most = 0;
  for (const auto& [at, bytes] : changes) most = std::max(most, now += bytes);
  return static_cast<Bytes>(most);
}

}  // namespace

std::vector<Interval> intervals_of(std::span<const Event> events, Bytes quantum) {
  std::vector<Interval> out;
  std::map<std::uint32_t, std::size_t> live;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].what == What::alloc) {
      live[events[i].block] = out.size();
      out.push_back({i, events.size(), rounded(events[i].bytes, quantum)});
    } else if (const auto at = live.find(events[i].block); events[i].what == What::free && at != live.end()) {
      out[at->second].to = i;
      live.erase(at);
    }
  }
  return out;
}

Packing pack(std::span<const Interval> blocks) {
  std::vector<std::size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  auto by_life = by_size;
  const auto life = [&](std::size_t i) { return blocks[i].to - blocks[i].from; };
  std::ranges::stable_sort(by_size, [&](std::size_t a, std::size_t b) {
    return blocks[a].bytes != blocks[b].bytes ? blocks[a].bytes > blocks[b].bytes : life(a) > life(b);
  });
  std::ranges::stable_sort(by_life, [&](std::size_t a, std::size_t b) {
    return life(a) != life(b) ? life(a) > life(b) : blocks[a].bytes > blocks[b].bytes;
  });
  const Bytes bound = live_peak(blocks);
  Packing best = place(blocks, by_size, Gap::smallest);
  for (const auto& [order, gap] : {std::pair{&by_size, Gap::first}, std::pair{&by_life, Gap::smallest}}) {
    if (best.height == bound) break;
    if (Packing other = place(blocks, *order, gap); other.height < best.height) best = std::move(other);
  }
  return best;
}

Bounds bounds_of(std::span<const Event> events, Bytes quantum) {
  struct Block {
    Bytes bytes;
    std::uint16_t stream;
  };
  std::vector<Block> blocks;
  Peak requested, live;
  std::map<std::uint16_t, Peak> streams;
  std::size_t allocs = 0;
  for (const Event& event : events) {
    if (event.what == What::alloc) {
      if (event.block >= blocks.size()) blocks.resize(event.block + 1 + event.block / 2);
      blocks[event.block] = {event.bytes, event.stream};
      requested.add(event.bytes);
      live.add(rounded(event.bytes, quantum));
      streams[event.stream].add(rounded(event.bytes, quantum));
      ++allocs;
    } else if (event.what == What::free && event.block < blocks.size() && blocks[event.block].bytes != 0) {
      Block& block = blocks[event.block];
      requested.now -= block.bytes;
      live.now -= rounded(block.bytes, quantum);
      streams[block.stream].now -= rounded(block.bytes, quantum);
      block.bytes = 0;
    }
  }
  Bounds out{requested.most, live.most, 0, 0, {}};
  out.paged = replay(events, Scenario{.kind = Scenario::Kind::uncached}, OnFailure::go_on).counters.reserved_peak;
  for (const auto& [stream, peak] : streams) out.per_stream += peak.most;
  if (allocs <= kMostPacked) out.packed = pack(intervals_of(events, quantum)).height;
  return out;
}

}  // namespace vramscope::whatif
