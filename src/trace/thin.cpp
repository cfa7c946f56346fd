#include "trace/thin.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace vramscope::trace {
namespace {

using RowCounters = std::array<std::size_t, 256>;

void push_event(Chunk& to, const At& at, EventKind kind) {
  to.kind.push_back(kind);
  to.seq.push_back(at.seq);
  to.time_us.push_back(at.time_us);
  to.thread.push_back(at.thread);
}

At at_of(const Chunk& chunk, std::size_t event) { return {chunk.seq[event], chunk.time_us[event], chunk.thread[event]}; }

void push_omitted(Chunk& to, const At& at, const Omitted& row) {
  push_event(to, at, EventKind::omitted);
  to.tables.omitted.push(row);
}

// Copies an event with its row.
void copy_event(const RecordedChunk& from, std::size_t event, std::size_t row, RecordedChunk& to) {
  const EventKind kind = from.chunk.kind[event];
  push_event(to.chunk, at_of(from.chunk, event), kind);
  if (kind == EventKind::alloc) {
    to.chunk.tables.alloc.push(from.chunk.tables.alloc.row(row));
    to.ordinals.push_back(from.ordinals[row]);
    return;
  }
  for_each_table_member([&](EventKind of, auto table) {
    if (of == kind) (to.chunk.tables.*table).push((from.chunk.tables.*table).row(row));
  });
}

// Finds what can be omitted and what has to be counted instead.
class Selection {
 public:
  Selection(const RecordedChunk& in, std::span<const Site> sites, Detail detail)
      : chunk_(in.chunk), ordinals_(in.ordinals), sites_(sites), detail_(detail), drop_(in.chunk.kind.size(), false) {}

  void run() {
    find_pairs();
    RowCounters rows{};
    for (std::size_t event = 0; event < chunk_.kind.size(); ++event) {
      const EventKind kind = chunk_.kind[event];
      look(event, kind, rows[std::to_underlying(kind)]++);
    }
    end_segment();
    for (auto& [key, kept] : samples_) drop_all_but(kept);
    std::ranges::sort(omitted_, {}, &std::pair<std::size_t, Omitted>::first);
  }

  bool dropped(std::size_t event) const { return drop_[event]; }
  // What replaces the detail, by the event that it follows.
  const std::vector<std::pair<std::size_t, Omitted>>& omitted() const { return omitted_; }

 private:
  struct Sum {
    Omitted row;
    std::size_t event = 0;  // where the pool was highest
  };
  struct Samples {
    std::vector<std::pair<std::size_t, std::uint64_t>> all;  // event, value
    bool only_last = false;
  };

  std::size_t row_of(std::uint64_t ordinal) const {
    const auto found = std::ranges::lower_bound(ordinals_, ordinal);
    return found != ordinals_.end() && *found == ordinal ? static_cast<std::size_t>(found - ordinals_.begin()) : ordinals_.size();
  }

  void find_pairs() {
    dead_alloc_.assign(chunk_.tables.alloc.size(), false);
    dead_free_.assign(chunk_.tables.free.size(), false);
    for (std::size_t row = 0; row < dead_free_.size(); ++row) {
      const std::uint64_t ordinal = chunk_.tables.free.alloc[row];
      if (ordinal == kNone || ordinals_.empty() || ordinal < ordinals_.front()) continue;
      const std::size_t alloc = row_of(ordinal);
      if (alloc == ordinals_.size() || dead_alloc_[alloc]) continue;
      dead_alloc_[alloc] = dead_free_[row] = true;
    }
  }

  void look(std::size_t event, EventKind kind, std::size_t row) {
    switch (kind) {
      case EventKind::alloc:
        if (dead_alloc_[row]) omit(event, row);
        break;
      case EventKind::free_:
        drop_[event] = dead_free_[row];
        break;
      case EventKind::omitted:
        drop_[event] = true;
        add(event, chunk_.tables.omitted.row(row));
        break;
      case EventKind::mark:
        mark(event, chunk_.tables.mark.row(row));
        break;
      case EventKind::device_sample:
        sample(event, kind, std::to_underlying(kind), chunk_.tables.device_sample.device[row],
               chunk_.tables.device_sample.used[row]);
        break;
      case EventKind::host_sample:
        sample(event, kind, std::to_underlying(kind), 0, chunk_.tables.host_sample.rss[row]);
        break;
      case EventKind::totals:
        sample(event, kind, std::to_underlying(kind), std::to_underlying(chunk_.tables.totals.pool[row]), 0);
        break;
      default:
        break;
    }
  }

  void omit(std::size_t event, std::size_t row) {
    drop_[event] = true;
    const Alloc alloc = chunk_.tables.alloc.row(row);
    add(event, {sites_[std::to_underlying(alloc.site)].pool, 1, alloc.granted, 0, alloc.granted});
  }

  void add(std::size_t event, const Omitted& more) {
    auto sum = std::ranges::find(segment_, more.pool, [](const Sum& of) { return of.row.pool; });
    if (sum == segment_.end()) sum = segment_.insert(sum, Sum{{.pool = more.pool}, event});
    sum->row.allocs += more.allocs;
    sum->row.bytes += more.bytes;
    sum->row.largest = std::max(sum->row.largest, more.largest);
    if (more.peak >= sum->row.peak && more.peak > 0) sum->event = event;
    sum->row.peak = std::max(sum->row.peak, more.peak);
  }

  void end_segment() {
    for (const Sum& sum : segment_) omitted_.emplace_back(sum.event, sum.row);
    segment_.clear();
  }

  bool below_detail(MarkKind kind) const {
    switch (kind) {
      case MarkKind::layer:
      case MarkKind::scope:
      case MarkKind::function:
      case MarkKind::tape:
        return detail_ >= Detail::steps;
      case MarkKind::step:
      case MarkKind::batch:
        return detail_ >= Detail::totals;
      default:
        return false;
    }
  }

  // Marks are removed in pairs, so that what begins in another chunk also ends.
  void mark(std::size_t event, const Mark& row) {
    if (detail_ < Detail::totals && ends_segment(row.kind)) end_segment();
    if (!below_detail(row.kind)) return;
    auto& open = open_[{chunk_.thread[event], row.kind}];
    if (row.edge == MarkEdge::begin) {
      open.emplace_back(event, row.name);
    } else if (row.edge == MarkEdge::instant) {
      drop_[event] = true;
    } else if (!open.empty() && open.back().second == row.name) {
      drop_[event] = drop_[open.back().first] = true;
      open.pop_back();
    }
  }

  void sample(std::size_t event, EventKind kind, std::uint8_t table, std::int64_t of, std::uint64_t value) {
    if (detail_ < Detail::steps) return;
    Samples& samples = samples_[{table, of}];
    samples.only_last = kind == EventKind::totals;
    samples.all.emplace_back(event, value);
  }

  void drop_all_but(const Samples& samples) {
    for (const auto& [event, value] : samples.all) drop_[event] = true;
    drop_[samples.all.back().first] = false;
    if (samples.only_last) return;
    drop_[samples.all.front().first] = false;
    drop_[std::ranges::max_element(samples.all, {}, &std::pair<std::size_t, std::uint64_t>::second)->first] = false;
  }

  const Chunk& chunk_;
  const std::vector<std::uint64_t>& ordinals_;
  std::span<const Site> sites_;
  Detail detail_;
  std::vector<bool> drop_;  // by event
  std::vector<bool> dead_alloc_;
  std::vector<bool> dead_free_;
  std::vector<Sum> segment_;
  std::vector<std::pair<std::size_t, Omitted>> omitted_;
  std::map<std::pair<ThreadId, MarkKind>, std::vector<std::pair<std::size_t, StringId>>> open_;
  std::map<std::pair<std::uint8_t, std::int64_t>, Samples> samples_;
};

}  // namespace

void PeakTracker::alloc(PoolId pool, std::uint64_t bytes, std::size_t event) {
  const std::size_t index = std::to_underlying(pool);
  if (index >= pools_.size()) pools_.resize(index + 1);
  OfPool& of = pools_[index];
  of.live += bytes;
  of.active = true;
  if (of.live > of.peak.bytes) of.peak = {event, pool, of.live};
}

void PeakTracker::free(PoolId pool, std::uint64_t bytes) {
  if (std::to_underlying(pool) < pools_.size()) pools_[std::to_underlying(pool)].live -= bytes;
}

void PeakTracker::boundary(std::size_t event) {
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    if (pools_[i].peak.bytes > 0) peaks_.push_back(pools_[i].peak);
    pools_[i].peak = {event, static_cast<PoolId>(i), pools_[i].live};
  }
}

std::vector<Peak> PeakTracker::take() {
  boundary(0);
  std::erase_if(peaks_, [&](const Peak& peak) { return !pools_[std::to_underlying(peak.pool)].active; });
  std::ranges::sort(peaks_, {}, &Peak::event);
  for (OfPool& of : pools_) of.active = false;
  return std::exchange(peaks_, {});
}

bool ends_segment(MarkKind kind) { return kind == MarkKind::step || kind == MarkKind::batch || kind == MarkKind::epoch; }

RecordedChunk with_peaks(const Chunk& chunk, std::span<const Peak> peaks) {
  RecordedChunk all{chunk, {}};
  all.ordinals.resize(chunk.tables.alloc.size());
  for (std::size_t i = 0; i < all.ordinals.size(); ++i) all.ordinals[i] = chunk.first_alloc + i;
  // Only the common columns change; the rows of the other events stay as they are.
  Chunk& out = all.chunk;
  out.kind.clear();
  out.seq.clear();
  out.time_us.clear();
  out.thread.clear();
  auto peak = peaks.begin();
  for (std::size_t event = 0; event < chunk.kind.size(); ++event) {
    push_event(out, at_of(chunk, event), chunk.kind[event]);
    for (; peak != peaks.end() && peak->event == event; ++peak)
      push_omitted(out, at_of(chunk, event), {peak->pool, 0, 0, peak->bytes, 0});
  }
  return all;
}

void join(RecordedChunk& to, const RecordedChunk& next) {
  RowCounters rows{};
  for (std::size_t event = 0; event < next.chunk.kind.size(); ++event) {
    copy_event(next, event, rows[std::to_underlying(next.chunk.kind[event])]++, to);
  }
}

RecordedChunk thin(const RecordedChunk& in, std::span<const Site> sites, Detail detail) {
  Selection selection(in, sites, detail);
  selection.run();
  RecordedChunk out;
  out.chunk.first_event = in.chunk.first_event;
  out.chunk.first_alloc = in.chunk.first_alloc;
  RowCounters rows{};
  auto omitted = selection.omitted().begin();
  for (std::size_t event = 0; event < in.chunk.kind.size(); ++event) {
    const std::size_t row = rows[std::to_underlying(in.chunk.kind[event])]++;
    if (!selection.dropped(event)) copy_event(in, event, row, out);
    for (; omitted != selection.omitted().end() && omitted->first == event; ++omitted) {
      push_omitted(out.chunk, at_of(in.chunk, event), omitted->second);
    }
  }
  return out;
}

}  // namespace vramscope::trace
