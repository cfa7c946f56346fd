#include "analyze/index/scan.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "analyze/index/gaps.h"
#include "analyze/index/parallel.h"
#include "support/secret_hash.h"
#include "trace/gen/site_flags.h"

namespace vramscope::analyze {
namespace {

// Numbers (site, granted) pairs. Each thread remembers the last answer of every site: blocks of one site nearly always have
// the same size.
class KindTable {
 public:
  KindTable(const trace::Dictionaries& dictionaries, support::MemoryBudget& memory)
      : dictionaries_(dictionaries), memory_(memory) {}

  struct Cache {
    using Last = std::pair<std::uint64_t, std::uint32_t>;
    std::vector<Last> last;  // by site: granted, kind
  };
  Cache cache() const { return {std::vector<Cache::Last>(dictionaries_.sites.size(), {0, kNone32})}; }

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
    std::size_t operator()(const std::pair<std::uint32_t, std::uint64_t>& k) const {
      return support::SecretHash{}(support::SecretHash{}(k.first) ^ k.second);
    }
  };
  std::uint32_t find(std::uint32_t site, std::uint64_t granted) {
    std::lock_guard lock(mutex_);
    if (kinds_.size() == paid_) {
      if (!memory_.take(kPaidAtOnce, kKindBytes)) throw std::bad_alloc();
      paid_ += kPaidAtOnce;
    }
    auto [it, fresh] = ids_.try_emplace({site, granted}, static_cast<std::uint32_t>(kinds_.size()));
    if (fresh) {
      Kind kind;
      kind.site = site;
      // Memory of another process is shown here, but counted there.
      kind.granted = (dictionaries_.sites[site].flags & trace::kSiteImported) != 0 ? 0 : granted;
      kind.requested = dictionaries_.sites[site].requested;
      kind.pool = static_cast<std::uint32_t>(dictionaries_.sites[site].pool);
      kinds_.push_back(kind);
    }
    return it->second;
  }
  static constexpr std::size_t kPaidAtOnce = 1024;
  static constexpr std::size_t kKindBytes = 8 * sizeof(Kind);  // with its entries in this table and in those that follow
  const trace::Dictionaries& dictionaries_;
  support::MemoryBudget& memory_;
  std::size_t paid_ = 0;
  std::mutex mutex_;
  tsl::robin_map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t, Hash> ids_;
  std::vector<Kind> kinds_;
};

// What one chunk contributes besides its columns.
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

// What all threads of a scan use together.
struct Shared {
  const Columns& columns;
  const trace::Dictionaries& dictionaries;
  KindTable kinds;
  std::vector<std::uint64_t> unmatched_frees;  // by pool
};

class ChunkReader {
 public:
  ChunkReader(const trace::Chunk& chunk, Shared& shared, KindTable::Cache& cache, Piece& piece)
      : chunk_(chunk), shared_(shared), columns_(shared.columns), cache_(cache), piece_(piece) {}

  void read() {
    const std::size_t events = chunk_.kind.size();
    const std::uint64_t first = chunk_.first_event;
    piece_.chunk.events = events;
    if (events == 0 || first + events > columns_.ref.size()) return;
    set_ticks(chunk_, columns_.tick.subspan(first, events), piece_.chunk);
    std::array<std::size_t, 256> rows{};  // read so far, by event kind
    std::uint64_t now_us = 0;
    for (std::size_t i = 0; i < events; ++i) {
      now_us = std::max(now_us, chunk_.time_us[i]);
      const trace::EventKind kind = chunk_.kind[i];
      const std::size_t row = rows[std::to_underlying(kind)]++;
      std::uint32_t ref = kNone32;
      if (kind == trace::EventKind::alloc)
        ref = read_alloc(i, row);
      else if (kind == trace::EventKind::free_)
        ref = read_free(i, row);
      else
        keep_row(i, row, now_us);
      columns_.ref[first + i] = ref;
    }
  }

 private:
  std::uint32_t position(std::size_t i) const { return static_cast<std::uint32_t>(chunk_.first_event + i); }

  // Both return the event's value in the `ref` column.
  std::uint32_t read_alloc(std::size_t i, std::size_t row) {
    const auto& in = chunk_.tables.alloc;
    const std::uint64_t id = chunk_.first_alloc + row;
    if (id >= columns_.birth.size()) return kNone32;
    const auto site = static_cast<std::uint32_t>(in.site[row]);
    columns_.birth[id] = position(i);
    columns_.address[id] = in.address[row];
    columns_.kind[id] = shared_.kinds.of(site, in.granted[row], cache_);
    columns_.attributes[id] = static_cast<std::uint32_t>(chunk_.thread[i]);
    Counts& counts = piece_.tables.counts;
    counts.allocs += 1;
    if (site < shared_.dictionaries.sites.size() && (shared_.dictionaries.sites[site].flags & trace::kSiteGivenAgain) != 0)
      counts.given_again += 1;
    return static_cast<std::uint32_t>(id << 1);
  }

  std::uint32_t read_free(std::size_t i, std::size_t row) {
    const auto& in = chunk_.tables.free;
    const std::uint64_t id = in.alloc[row];
    piece_.tables.counts.frees += 1;
    if (id >= columns_.death.size()) {
      piece_.tables.counts.unmatched_frees += 1;
      if (const auto pool = static_cast<std::size_t>(in.pool[row]); pool < shared_.unmatched_frees.size())
        std::atomic_ref(shared_.unmatched_frees[pool]).fetch_add(1, std::memory_order_relaxed);
      return kNone32;
    }
    // A damaged file may free a block twice, from two chunks at once: the store must be atomic, its order does not matter.
    std::atomic_ref(columns_.death[id]).store(position(i), std::memory_order_relaxed);
    return static_cast<std::uint32_t>(id << 1 | 1);
  }

  void keep_row(std::size_t i, std::size_t row, std::uint64_t now_us) {
    const trace::Tables& in = chunk_.tables;
    Tables& out = piece_.tables;
    const auto keep = [&](auto& to, const auto& from) {
      to.push_back({chunk_.first_event + i, now_us, static_cast<std::uint32_t>(chunk_.thread[i]), from.row(row)});
    };
    switch (chunk_.kind[i]) {
      case trace::EventKind::region:
        return keep(out.regions, in.region);
      case trace::EventKind::mark:
        return keep(out.marks, in.mark);
      case trace::EventKind::tag:
        return keep(out.tags, in.tag);
      case trace::EventKind::stats:
        return keep(out.stats, in.stats);
      case trace::EventKind::oom:
        return keep(out.ooms, in.oom);
      case trace::EventKind::device_sample:
        return keep(out.device_samples, in.device_sample);
      case trace::EventKind::host_sample:
        return keep(out.host_samples, in.host_sample);
      case trace::EventKind::setting:
        return keep(out.settings, in.setting);
      case trace::EventKind::lost:
        return keep(out.lost, in.lost);
      case trace::EventKind::context:
        return keep(out.contexts, in.context);
      case trace::EventKind::omitted:
        return keep(out.omitted, in.omitted);
      case trace::EventKind::totals:
        return keep(out.totals, in.totals);
      default:
        if (const auto report = trace::report_at(in, chunk_.kind[i], row)) out.reports.push_back(*report);
    }
  }

  const trace::Chunk& chunk_;
  Shared& shared_;
  const Columns& columns_;
  KindTable::Cache& cache_;
  Piece& piece_;
};

constexpr std::uint64_t kPoolBytes = 256;  // of one pool, here and in its figures

// Rows take memory several times: as they are kept, and again before and while they are joined.
bool pay_for(const trace::Tables& tables, support::MemoryBudget& memory) {
  constexpr std::uint64_t kCopies = 4;
  std::uint64_t bytes = 0;
  trace::for_each_table(tables, [&](trace::EventKind kind, const auto& table) {
    if (kind != trace::EventKind::alloc && kind != trace::EventKind::free_)
      bytes += table.size() * sizeof(Stamped<decltype(table.row(0))>);
  });
  return memory.take(bytes, kCopies);
}

// One piece per chunk; nothing if the rows need more memory than is left.
std::optional<std::vector<Piece>> read_chunks(const trace::Reader& reader, Shared& shared, unsigned threads,
                                              support::MemoryBudget& memory) {
  std::vector<Piece> pieces(reader.chunks());
  std::vector<KindTable::Cache> caches(std::max(1u, threads), shared.kinds.cache());
  std::atomic<bool> too_much{false};
  parallel(threads, pieces.size(), [&](std::size_t i, unsigned thread) {
    if (too_much) return;
    const auto chunk = reader.chunk(i);
    if (!chunk) {
      pieces[i].chunk.lost = 1;
    } else if (!pay_for(chunk->tables, memory)) {
      too_much = true;
    } else {
      pieces[i].chunk.first_event = chunk->first_event;
      ChunkReader(*chunk, shared, caches[thread], pieces[i]).read();
    }
  });
  if (too_much) return std::nullopt;
  return pieces;
}

template <typename T>
void join(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
  from = {};
}

void join_rows(Tables& to, Tables& from) {
  to.counts.allocs += from.counts.allocs;
  to.counts.frees += from.counts.frees;
  to.counts.given_again += from.counts.given_again;
  to.counts.unmatched_frees += from.counts.unmatched_frees;
  join(to.regions, from.regions);
  join(to.marks, from.marks);
  join(to.tags, from.tags);
  join(to.stats, from.stats);
  join(to.ooms, from.ooms);
  join(to.device_samples, from.device_samples);
  join(to.host_samples, from.host_samples);
  join(to.settings, from.settings);
  join(to.lost, from.lost);
  join(to.contexts, from.contexts);
  join(to.totals, from.totals);
  join(to.omitted, from.omitted);
  join(to.reports, from.reports);
}

// Places the chunks one after the other and returns the gaps that unreadable ones leave. Times never decrease from one chunk to
// the next.
std::vector<Gap> line_up(std::vector<Piece>& pieces) {
  std::vector<Gap> gaps;
  std::uint64_t floor_us = 0, next = 0;
  for (Piece& piece : pieces) {
    ChunkRow& row = piece.chunk;
    if (row.lost != 0) {
      row.first_event = next;
      row.base_us = row.last_us = floor_us;
    }
    if (next < row.first_event) gaps.push_back({next, row.first_event});
    next = row.first_event + row.events;
    row.floor_us = floor_us;
    floor_us = row.last_us = std::max(floor_us, row.last_us);
  }
  return gaps;
}

}  // namespace

std::unexpected<Error> asks_for_too_much(const trace::Reader& reader) {
  return fail(fmt::format("{}: its {} events need {}; it is damaged or forged", reader.path().string(), reader.events(),
                          support::more_than(reader.memory_limit())));
}

Result<Tables> scan(const trace::Reader& reader, const Columns& columns, unsigned threads, support::MemoryBudget& memory) {
  const trace::Dictionaries& dictionaries = reader.dictionaries();
  if (!memory.take(reader.chunks(), sizeof(Piece)) || !memory.take(dictionaries.pools.size(), kPoolBytes) ||
      !memory.take(dictionaries.sites.size(), threads * sizeof(KindTable::Cache::Last)))
    return asks_for_too_much(reader);
  Shared shared{columns, dictionaries, KindTable(dictionaries, memory), std::vector<std::uint64_t>(dictionaries.pools.size())};
  // A block lives until its free is seen, and an allocation in an unreadable chunk was never born.
  std::ranges::fill(columns.death, kNone32);
  std::ranges::fill(columns.birth, kNone32);

  auto pieces = read_chunks(reader, shared, threads, memory);
  if (!pieces) return asks_for_too_much(reader);

  // Events of an unreadable chunk keep their positions, without meaning.
  const std::vector<Gap> gaps = line_up(*pieces);
  for (const Gap& gap : gaps)
    for (std::uint64_t pos = gap.begin; pos < gap.end && pos < columns.ref.size(); ++pos) columns.ref[pos] = kNone32;
  const std::uint64_t end = pieces->empty() ? 0 : pieces->back().chunk.first_event + pieces->back().chunk.events;
  for (std::uint64_t pos = end; pos < columns.ref.size(); ++pos) columns.ref[pos] = kNone32;

  Tables out;
  for (Piece& piece : *pieces) {
    out.counts.lost_chunks += piece.chunk.lost;
    out.chunks.push_back(piece.chunk);
    join_rows(out, piece.tables);
  }
  out.kinds = shared.kinds.take();
  out.unmatched_frees = std::move(shared.unmatched_frees);
  out.counts.events = columns.ref.size();
  if (!gaps.empty()) end_overwritten(columns, out.kinds, gaps);
  return out;
}

}  // namespace vramscope::analyze
