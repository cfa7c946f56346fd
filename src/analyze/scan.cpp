#include "analyze/scan.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "analyze/gaps.h"
#include "analyze/parallel.h"

namespace vramscope::analyze {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ x >> 33;
}

// Numbers (site, granted) pairs. Each thread remembers the last answer of every site: blocks of one site nearly always have
// the same size.
class KindTable {
 public:
  explicit KindTable(const trace::Dictionaries& words) : words_(words) {}

  struct Cache {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> last;  // by site: granted, kind
  };
  Cache cache() const { return {std::vector<std::pair<std::uint64_t, std::uint32_t>>(words_.sites.size(), {0, kNone32})}; }

  std::uint32_t of(std::uint32_t site, std::uint64_t granted, Cache& cache) {
    if (site >= cache.last.size()) return kNone32;
    auto& [seen, kind] = cache.last[site];
    if (kind == kNone32 || seen != granted) {
      seen = granted;
      kind = find(site, granted);
    }
    return kind;
  }
  std::vector<Kind> take() { return std::move(kinds_); }

 private:
  struct Hash {
    std::size_t operator()(const std::pair<std::uint32_t, std::uint64_t>& k) const { return mix(k.second * 31 + k.first); }
  };
  std::uint32_t find(std::uint32_t site, std::uint64_t granted) {
    std::lock_guard lock(mutex_);
    auto [it, fresh] = ids_.try_emplace({site, granted}, static_cast<std::uint32_t>(kinds_.size()));
    if (fresh) {
      Kind kind;
      kind.site = site;
      kind.granted = granted;
      kind.requested = words_.sites[site].requested;
      kind.pool = static_cast<std::uint32_t>(words_.sites[site].pool);
      kinds_.push_back(kind);
    }
    return it->second;
  }
  const trace::Dictionaries& words_;
  std::mutex mutex_;
  tsl::robin_map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t, Hash> ids_;
  std::vector<Kind> kinds_;
};

// What one chunk gives besides its columns.
struct Piece {
  ChunkRow chunk;
  Tables tables;
};

void set_ticks(const trace::Chunk& chunk, std::span<std::uint32_t> tick, ChunkRow& row) {
  std::uint64_t base = chunk.time_us.front(), high = base;
  for (std::uint64_t t : chunk.time_us) high = std::max(high, t);
  row.base_us = base;
  row.last_us = high;
  row.shift = static_cast<std::uint32_t>(std::max(0, static_cast<int>(std::bit_width(high - base)) - 32));
  std::uint64_t now = base;  // threads stamp the time a little out of order; views need it monotone
  for (std::size_t i = 0; i < chunk.time_us.size(); ++i) {
    now = std::max(now, chunk.time_us[i]);
    tick[i] = static_cast<std::uint32_t>((now - base) >> row.shift);
  }
}

constexpr std::uint64_t kGivenAgain = 8;  // bit of a site's flags: the free before it did not happen

struct Shared {
  const Columns& columns;
  const trace::Dictionaries& words;
  KindTable kinds;
};

void read_chunk(const trace::Chunk& chunk, Shared& shared, KindTable::Cache& cache, Piece& piece) {
  const Columns& c = shared.columns;
  std::size_t n = chunk.kind.size();
  std::uint64_t first = chunk.first_event;
  piece.chunk.events = n;
  if (n == 0 || first + n > c.ref.size()) return;
  set_ticks(chunk, c.tick.subspan(first, n), piece.chunk);
  Tables& out = piece.tables;
  const trace::Tables& in = chunk.tables;
  std::size_t at[16] = {};  // rows read so far, by event kind
  std::uint64_t now = 0;
  auto keep = [&](auto& to, const auto& from, std::size_t i, std::size_t row) {
    to.push_back({first + i, now, static_cast<std::uint32_t>(chunk.thread[i]), from.row(row)});
  };
  for (std::size_t i = 0; i < n; ++i) {
    now = std::max(now, chunk.time_us[i]);
    auto kind = chunk.kind[i];
    std::size_t row = at[static_cast<std::size_t>(kind) & 15]++;
    std::uint64_t pos = first + i;
    std::uint32_t ref = kNone32;
    switch (kind) {
      case trace::EventKind::alloc: {
        std::uint64_t id = chunk.first_alloc + row;
        if (id >= c.birth.size()) break;
        auto site = static_cast<std::uint32_t>(in.alloc.site[row]);
        c.birth[id] = static_cast<std::uint32_t>(pos);
        c.address[id] = in.alloc.address[row];
        c.kind[id] = shared.kinds.of(site, in.alloc.granted[row], cache);
        c.note[id] = static_cast<std::uint32_t>(chunk.thread[i]);
        ref = static_cast<std::uint32_t>(id << 1);
        out.counts.allocs += 1;
        if (site < shared.words.sites.size() && (shared.words.sites[site].flags & kGivenAgain) != 0) out.counts.given_again += 1;
        break;
      }
      case trace::EventKind::free_: {
        std::uint64_t id = in.free.alloc[row];
        out.counts.frees += 1;
        if (id >= c.death.size()) {
          out.counts.unmatched_frees += 1;
          break;
        }
        // A damaged file may free a block twice, from two chunks at once: the store must be atomic, its order does not matter.
        std::atomic_ref(c.death[id]).store(static_cast<std::uint32_t>(pos), std::memory_order_relaxed);
        ref = static_cast<std::uint32_t>(id << 1 | 1);
        break;
      }
      case trace::EventKind::region:
        keep(out.regions, in.region, i, row);
        break;
      case trace::EventKind::mark:
        keep(out.marks, in.mark, i, row);
        break;
      case trace::EventKind::tag:
        keep(out.tags, in.tag, i, row);
        break;
      case trace::EventKind::stats:
        keep(out.stats, in.stats, i, row);
        break;
      case trace::EventKind::oom:
        keep(out.ooms, in.oom, i, row);
        break;
      case trace::EventKind::device_sample:
        keep(out.device_samples, in.device_sample, i, row);
        break;
      case trace::EventKind::host_sample:
        keep(out.host_samples, in.host_sample, i, row);
        break;
      case trace::EventKind::setting:
        keep(out.settings, in.setting, i, row);
        break;
      case trace::EventKind::lost:
        keep(out.lost, in.lost, i, row);
        break;
      case trace::EventKind::context:
        keep(out.contexts, in.context, i, row);
        break;
      case trace::EventKind::omitted:
        keep(out.omitted, in.omitted, i, row);
        break;
      case trace::EventKind::totals:
        keep(out.totals, in.totals, i, row);
        break;
    }
    c.ref[pos] = ref;
  }
}

template <typename T>
void join(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
  from = {};
}

}  // namespace

Tables scan(const trace::Reader& reader, const Columns& columns, unsigned threads) {
  const trace::Dictionaries& words = reader.dictionaries();
  Shared shared{columns, words, KindTable(words)};
  // A block lives until its free is seen, and an allocation in an unreadable chunk was never born.
  std::memset(columns.death.data(), 0xff, columns.death.size_bytes());
  std::memset(columns.birth.data(), 0xff, columns.birth.size_bytes());

  std::vector<Piece> pieces(reader.chunks());
  std::vector<KindTable::Cache> caches(std::max(1u, threads), shared.kinds.cache());
  parallel(threads, pieces.size(), [&](std::size_t i, unsigned thread) {
    auto chunk = reader.chunk(i);
    if (!chunk) {
      pieces[i].chunk.lost = 1;
      return;
    }
    pieces[i].chunk.first_event = chunk->first_event;
    read_chunk(*chunk, shared, caches[thread], pieces[i]);
  });

  Tables out;
  std::vector<Gap> gaps;
  std::uint64_t floor = 0, next = 0;
  for (Piece& piece : pieces) {
    ChunkRow& row = piece.chunk;
    if (row.lost != 0) {
      row.first_event = next;
      row.base_us = row.last_us = floor;
      out.counts.lost_chunks += 1;
    }
    // Events of an unreadable chunk keep their places, without meaning.
    for (std::uint64_t p = next; p < row.first_event && p < columns.ref.size(); ++p) columns.ref[p] = kNone32;
    if (next < row.first_event) gaps.push_back({next, row.first_event});
    next = row.first_event + row.events;
    row.floor_us = floor;
    floor = row.last_us = std::max(floor, row.last_us);
    out.chunks.push_back(row);
    Tables& t = piece.tables;
    out.counts.allocs += t.counts.allocs;
    out.counts.frees += t.counts.frees;
    out.counts.given_again += t.counts.given_again;
    out.counts.unmatched_frees += t.counts.unmatched_frees;
    join(out.regions, t.regions);
    join(out.marks, t.marks);
    join(out.tags, t.tags);
    join(out.stats, t.stats);
    join(out.ooms, t.ooms);
    join(out.device_samples, t.device_samples);
    join(out.host_samples, t.host_samples);
    join(out.settings, t.settings);
    join(out.lost, t.lost);
    join(out.contexts, t.contexts);
    join(out.totals, t.totals);
    join(out.omitted, t.omitted);
  }
  for (std::uint64_t p = next; p < columns.ref.size(); ++p) columns.ref[p] = kNone32;
  out.kinds = shared.kinds.take();
  out.counts.events = columns.ref.size();
  if (!gaps.empty()) end_overwritten(columns, out.kinds, std::move(gaps));
  return out;
}

}  // namespace vramscope::analyze
