#include "analyze/summary.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "analyze/losses.h"

namespace vramscope::analyze {

namespace {

using trace::EventKind;

bool is_device_memory(trace::Memory memory) {
  return memory == trace::Memory::device || memory == trace::Memory::managed || memory == trace::Memory::array;
}

std::optional<int> as_int(const std::map<std::string, std::string>& settings, const std::string& key) {
  const auto found = settings.find(key);
  if (found == settings.end()) return std::nullopt;
  int value = 0;
  const auto& text = found->second;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

// Bits of a site's flags.
constexpr std::uint64_t kImported = 4;    // counted by the process that made it
constexpr std::uint64_t kGivenAgain = 8;  // the free before it did not happen: neither of the two counts

// Running state of one pool.
struct PoolState {
  PoolSummary row;
  std::uint64_t live = 0;
  std::uint64_t requested = 0;
  std::uint64_t regions = 0;
  std::optional<trace::Totals> totals;  // the recorder's own, newest
};

class Pass {
 public:
  Pass(const trace::Dictionaries& names, Summary& out) : names_(names), out_(out), pools_(names.pools.size()) {
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      const trace::Pool& pool = names.pools[i];
      PoolSummary& row = pools_[i].row;
      row.name = text(pool.name);
      row.device = pool.device;
      row.level = pool.level;
      row.memory = pool.memory;
      row.framework = pool.framework;
    }
  }

  void chunk(const trace::Chunk& chunk) {
    // Allocations of an unreadable chunk keep their numbers.
    if (blocks_.size() < chunk.first_alloc) blocks_.resize(chunk.first_alloc);
    std::array<std::size_t, 32> row{};
    for (std::size_t i = 0; i < chunk.kind.size(); ++i) {
      const auto kind = static_cast<std::size_t>(chunk.kind[i]);
      if (kind < row.size()) event(chunk.kind[i], chunk.tables, row[kind]++);
      out_.duration_us = std::max(out_.duration_us, chunk.time_us[i]);
    }
    out_.events += chunk.kind.size();
  }

  void chunk_is_lost() { chunks_lost_ = true; }

  void finish() {
    for (PoolState& pool : pools_) {
      settle(pool);
      const PoolSummary& row = pool.row;
      if (row.allocs == 0 && row.region_bytes_peak == 0 && row.ooms + row.refusals == 0) continue;
      (row.level == trace::Level::driver ? out_.driver_pools : out_.pools).push_back(row);
    }
    settle_driver();
    const auto larger = [](const PoolSummary& a, const PoolSummary& b) { return a.peak_bytes > b.peak_bytes; };
    std::stable_sort(out_.pools.begin(), out_.pools.end(), larger);
    std::stable_sort(out_.driver_pools.begin(), out_.driver_pools.end(), larger);
  }

 private:
  static constexpr auto kNoSite = static_cast<trace::SiteId>(~std::uint32_t{0});
  struct Block {
    trace::SiteId site = kNoSite;
    std::uint64_t granted = 0;
  };

  std::string text(trace::StringId id) const {
    const auto index = static_cast<std::size_t>(id);
    return index < names_.strings.size() ? names_.strings[index] : std::string();
  }
  const trace::Site* site(trace::SiteId id) const {
    const auto index = static_cast<std::size_t>(id);
    return index < names_.sites.size() ? &names_.sites[index] : nullptr;
  }
  PoolState* pool(trace::PoolId id) {
    const auto index = static_cast<std::size_t>(id);
    return index < pools_.size() ? &pools_[index] : nullptr;
  }

  void event(EventKind kind, const trace::Tables& tables, std::size_t row) {
    switch (kind) {
      case EventKind::alloc:
        return alloc(tables.alloc.row(row));
      case EventKind::free_:
        return free(tables.free.row(row));
      case EventKind::region:
        return region(tables.region.row(row));
      case EventKind::oom:
        return oom(tables.oom.row(row));
      case EventKind::device_sample:
        return device_sample(tables.device_sample.row(row));
      case EventKind::context:
        return context(tables.context.row(row));
      case EventKind::host_sample: {
        const auto host = tables.host_sample.row(row);
        ++out_.host.samples;
        out_.host.peak_rss_bytes = std::max(out_.host.peak_rss_bytes, host.rss);
        out_.host.peak_pinned_bytes = std::max(out_.host.peak_pinned_bytes, host.pinned);
        return;
      }
      case EventKind::setting: {
        const auto setting = tables.setting.row(row);
        out_.settings[text(setting.key)] = text(setting.value);
        return;
      }
      case EventKind::lost: {
        const auto lost = tables.lost.row(row);
        out_.lost[lost.kind] += lost.count;
        return;
      }
      case EventKind::omitted: {
        const auto omitted = tables.omitted.row(row);
        out_.thinned_allocs += omitted.allocs;
        if (PoolState* state = pool(omitted.pool)) {
          state->row.allocs += omitted.allocs;
          state->row.frees += omitted.allocs;
          state->row.peak_bytes = std::max(state->row.peak_bytes, omitted.peak);
          state->row.largest_alloc_bytes = std::max(state->row.largest_alloc_bytes, omitted.largest);
        }
        return;
      }
      case EventKind::totals: {
        const auto totals = tables.totals.row(row);
        if (PoolState* state = pool(totals.pool)) state->totals = totals;
        return;
      }
      case EventKind::mark:
      case EventKind::tag:
      case EventKind::stats:
        return;
    }
  }

  // Driver memory is also kept as one sum, and by owner.
  void count_driver(const trace::Site& where, const PoolState& state, std::uint64_t granted, bool born) {
    if (state.row.level != trace::Level::driver || !is_device_memory(state.row.memory)) return;
    DriverSummary& all = out_.driver;
    OwnerSummary& owner = all.by_owner[text(where.owner)];
    if (born) {
      if ((where.flags & kGivenAgain) != 0) {
        all.frees -= std::min<std::uint64_t>(all.frees, 1);
      } else {
        ++all.allocs;
        ++owner.allocs;
      }
      all.peak_bytes = std::max(all.peak_bytes, all.live_bytes += granted);
      owner.peak_bytes = std::max(owner.peak_bytes, owner.live_bytes += granted);
    } else {
      ++all.frees;
      all.live_bytes -= std::min(all.live_bytes, granted);
      owner.live_bytes -= std::min(owner.live_bytes, granted);
    }
  }

  void alloc(const trace::Alloc& event) {
    const trace::Site* where = site(event.site);
    const bool imported = where != nullptr && (where->flags & kImported) != 0;
    blocks_.push_back({event.site, imported ? 0 : event.granted});
    PoolState* state = where != nullptr ? pool(where->pool) : nullptr;
    if (state == nullptr) return;
    const std::uint64_t granted = blocks_.back().granted;
    if ((where->flags & kGivenAgain) != 0)
      state->row.frees -= std::min<std::uint64_t>(state->row.frees, 1);
    else
      ++state->row.allocs;
    state->live += granted;
    state->requested += imported ? 0 : where->requested;
    state->row.peak_bytes = std::max(state->row.peak_bytes, state->live);
    state->row.peak_requested_bytes = std::max(state->row.peak_requested_bytes, state->requested);
    state->row.largest_alloc_bytes = std::max(state->row.largest_alloc_bytes, granted);
    count_driver(*where, *state, granted, true);
  }

  void free(const trace::Free& event) {
    if (event.alloc >= blocks_.size()) {
      if (PoolState* state = pool(event.pool)) ++state->row.frees;
      return;
    }
    const Block block = blocks_[event.alloc];
    const trace::Site* where = site(block.site);
    PoolState* state = where != nullptr ? pool(where->pool) : nullptr;
    if (state == nullptr) return;
    ++state->row.frees;
    state->live -= std::min(state->live, block.granted);
    state->requested -= std::min(state->requested, (where->flags & kImported) != 0 ? 0 : where->requested);
    count_driver(*where, *state, block.granted, false);
  }

  void region(const trace::Region& event) {
    PoolState* state = pool(event.pool);
    if (state == nullptr) return;
    if (event.returned)
      state->regions -= std::min(state->regions, event.bytes);
    else
      state->regions += event.bytes;
    state->row.region_bytes_peak = std::max(state->row.region_bytes_peak, state->regions);
  }

  void oom(const trace::Oom& event) {
    const trace::Site* where = site(event.site);
    PoolState* state = where != nullptr ? pool(where->pool) : nullptr;
    if (state != nullptr) ++(event.final ? state->row.ooms : state->row.refusals);
  }

  DeviceSummary& device(std::int64_t index) {
    for (DeviceSummary& each : out_.devices)
      if (each.device == index) return each;
    out_.devices.push_back({});
    out_.devices.back().device = index;
    return out_.devices.back();
  }

  void device_sample(const trace::DeviceSample& sample) {
    DeviceSummary& row = device(sample.device);
    ++row.samples;
    row.total_bytes = sample.total;
    row.peak_used_bytes = std::max(row.peak_used_bytes, sample.used);
    if (sample.process != trace::kNone) row.peak_process_bytes = std::max(row.peak_process_bytes.value_or(0), sample.process);
  }

  void context(const trace::Context& event) {
    DeviceSummary& row = device(event.device);
    row.total_bytes = std::max(row.total_bytes, event.total);
    if (event.bytes != trace::kNone) row.context_bytes = row.context_bytes.value_or(0) + event.bytes;
  }

  // The recorder's totals are right even where events are missing; they may be older than the last events of a trace that broke
  // off.
  void settle(PoolState& pool) {
    PoolSummary& row = pool.row;
    row.end_bytes = pool.live;
    row.region_bytes_end = pool.regions;
    if (!pool.totals) return;
    const trace::Totals& totals = *pool.totals;
    const bool detail_missing = totals.allocs > row.allocs || totals.frees > row.frees;
    // A trace that broke off (a full disk) could not tell of its losses any more.
    if (detail_missing && !out_.ended && out_.lost.empty())
      out_.lost_events += totals.allocs - std::min(totals.allocs, row.allocs) + totals.frees - std::min(totals.frees, row.frees);
    row.allocs = std::max(row.allocs, totals.allocs);
    row.frees = std::max(row.frees, totals.frees);
    // Where every event is there the peak is theirs: they are in the allocator's order, and the recorder's running total is kept
    // outside its lock in versions that tell no sizes inside (2.18).
    if (totals.before > 0) row.peak_bytes = std::max(row.peak_bytes, totals.peak);
    // Blocks whose free was lost, or is in a chunk that cannot be read, look alive: only the running total is right then.
    if (detail_missing || chunks_lost_) row.peak_bytes = totals.peak;
    row.largest_alloc_bytes = std::max(row.largest_alloc_bytes, totals.largest);
    row.ooms = std::max(row.ooms, totals.ooms);
    row.before_bytes = totals.before;
    row.order_exact = totals.order_exact;
    if (detail_missing || totals.before > 0) row.end_bytes = totals.live;
  }

  // The same for the sum of all driver pools, whose common peak nobody counted: it is at most the sum of theirs.
  void settle_driver() {
    PoolSummary sum;
    for (const PoolSummary& pool : out_.driver_pools) {
      if (!is_device_memory(pool.memory)) continue;
      sum.allocs += pool.allocs;
      sum.frees += pool.frees;
      sum.end_bytes += pool.end_bytes;
      sum.peak_bytes += pool.peak_bytes;
    }
    DriverSummary& all = out_.driver;
    if (sum.allocs <= all.allocs && sum.frees <= all.frees) return;
    all.allocs = sum.allocs;
    all.frees = sum.frees;
    all.live_bytes = sum.end_bytes;
    all.peak_bytes = out_.driver_pools.size() == 1 ? sum.peak_bytes : std::min(all.peak_bytes, sum.peak_bytes);
  }

  const trace::Dictionaries& names_;
  Summary& out_;
  std::vector<PoolState> pools_;
  std::vector<Block> blocks_;  // by ordinal
  bool chunks_lost_ = false;
};

// A stack that was cut ends in a frame without a file, "(745 more frames)".
std::uint64_t count_cut_stacks(const trace::Dictionaries& words) {
  const auto is_rest = [&](trace::FrameId id) {
    const auto i = static_cast<std::size_t>(id);
    if (i >= words.frames.size() || static_cast<std::size_t>(words.frames[i].file) != 0) return false;
    const auto function = static_cast<std::size_t>(words.frames[i].function);
    return function < words.strings.size() && words.strings[function].ends_with(" more frames)");
  };
  return static_cast<std::uint64_t>(std::ranges::count_if(
      words.stacks, [&](const trace::Stack& stack) { return !stack.frames.empty() && is_rest(stack.frames.back()); }));
}

}  // namespace

Result<Summary> summarize(const std::string& path) {
  auto reader = trace::Reader::open(path);
  if (!reader) return std::unexpected(reader.error());
  Summary summary;
  summary.file = path;
  summary.damage = reader->damage().message;
  summary.ended = !reader->damage().truncated;
  Pass pass(reader->dictionaries(), summary);
  for (std::size_t i = 0; i < reader->chunks(); ++i) {
    auto chunk = reader->chunk(i);
    if (chunk) {
      pass.chunk(*chunk);
      continue;
    }
    pass.chunk_is_lost();
    if (summary.damage.empty()) summary.damage = chunk.error().message;
  }
  pass.finish();
  summary.cut_stacks = count_cut_stacks(reader->dictionaries());
  for (const auto& [kind, count] : summary.lost)
    if (are_missing(kind)) summary.lost_events += count;
  summary.command = summary.settings["process.command"];
  summary.pid = static_cast<std::uint64_t>(as_int(summary.settings, "process.pid").value_or(0));
  summary.exit_code = as_int(summary.settings, "process.exit_code");
  summary.signal = as_int(summary.settings, "process.signal");
  return summary;
}

const PoolSummary* main_pool(const Summary& summary) {
  const auto better = [](const PoolSummary& a, const PoolSummary& b) {
    if ((a.device >= 0) != (b.device >= 0)) return a.device < 0;
    return a.peak_bytes < b.peak_bytes;
  };
  const auto best = std::max_element(summary.pools.begin(), summary.pools.end(), better);
  return best == summary.pools.end() ? nullptr : &*best;
}

}  // namespace vramscope::analyze
