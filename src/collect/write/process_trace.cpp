#include "collect/write/process_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "support/units.h"
#include "trace/gen/site_flags.h"

namespace vramscope::collect {

namespace {

constexpr std::size_t kHoldersShown = 5;

std::uint64_t site_flags(std::uint8_t flags, bool of_objects) {
  return ((flags & spool::kFlagAsync) != 0 ? trace::kSiteStreamOrdered : 0) |
         ((flags & spool::kFlagUnknownSize) != 0 ? trace::kSiteSizeUnknown : 0) |
         ((flags & spool::kFlagImported) != 0 ? trace::kSiteImported : 0) | (of_objects ? trace::kSiteObject : 0);
}

trace::MarkEdge edge(std::uint8_t flags) {
  if ((flags & spool::kFlagBegin) != 0) return trace::MarkEdge::begin;
  return (flags & spool::kFlagEnd) != 0 ? trace::MarkEdge::end : trace::MarkEdge::instant;
}

std::uint8_t pools(const spool::Header& header) {
  static_assert(spool::kMaxPools < 256);
  return static_cast<std::uint8_t>(std::min<std::uint32_t>(header.pool_count.load(std::memory_order_acquire), spool::kMaxPools));
}

// The number comes from a spool, which may be damaged.
bool has_objects(const spool::Header& header, std::uint8_t pool) {
  return pool < spool::kMaxPools && (header.pools[pool].flags.load(std::memory_order_relaxed) & spool::kPoolOfObjects) != 0;
}

spool::AllocExtra extra_of(const Event& event) {
  return (event.head.flags & spool::kFlagExtended) != 0 ? event.extra() : spool::AllocExtra{};
}

}  // namespace

ProcessTrace::ProcessTrace(trace::Writer writer, const Definitions& definitions, const spool::Header& header)
    : writer_(std::move(writer)), definitions_(definitions), header_(header), ids_(writer_, definitions, header), live_(256) {}

bool ProcessTrace::all_known(const Event& event) const {
  const auto known = [&](auto... ids) { return !(ids_.text_missing(ids) || ...); };
  switch (event.head.kind) {
    case spool::RecordKind::alloc:
    case spool::RecordKind::oom: {
      const auto record = event.as<spool::AllocRecord>();
      const auto extra = extra_of(event);
      return known(record.op, record.shape, std::uint32_t{event.head.small}, extra.owner) && !ids_.stack_missing(extra.stack) &&
             !ids_.pool_missing(event.head.pool);
    }
    case spool::RecordKind::region:
    case spool::RecordKind::stats:
      return !ids_.pool_missing(event.head.pool);
    case spool::RecordKind::mark: {
      const auto mark = event.as<spool::MarkRecord>();
      return known(mark.name, mark.detail);
    }
    case spool::RecordKind::tag: {
      const auto tag = event.as<spool::TagRecord>();
      return known(tag.name, tag.layer);
    }
    case spool::RecordKind::setting: {
      const auto setting = event.as<spool::SettingRecord>();
      return known(setting.key, setting.value);
    }
    case spool::RecordKind::report: {
      const auto report = event.as<spool::ReportRecord>();
      return std::ranges::all_of(report.text, known);
    }
    default:
      return true;
  }
}

bool ProcessTrace::write(const Event& event, std::uint64_t time_us, bool last_call) {
  if (!all_known(event)) {
    if (!last_call) return false;
    ++names_missing_;
  }
  const spool::RecordHead& head = event.head;
  last_seq_ = std::max(last_seq_, head.seq);
  oom_work_ += kOomWorkPerEvent;
  const trace::At at{head.seq, time_us, ids_.thread(event.thread)};
  switch (head.kind) {
    case spool::RecordKind::alloc:
      return alloc(event, at, last_call);
    case spool::RecordKind::free:
      free(event, at);
      break;
    case spool::RecordKind::free_cancelled:
      cancel_free(event, at);
      break;
    case spool::RecordKind::region:
      region(event, at);
      break;
    case spool::RecordKind::mark: {
      const auto record = event.as<spool::MarkRecord>();
      writer_.append(at, trace::Mark{static_cast<trace::MarkKind>(head.small), edge(head.flags), ids_.text(record.name),
                                     record.number, ids_.text(record.detail)});
      break;
    }
    case spool::RecordKind::tag: {
      const auto record = event.as<spool::TagRecord>();
      writer_.append(at, trace::Tag{record.address, record.bytes, static_cast<trace::Category>(head.small),
                                    ids_.text(record.name), ids_.text(record.layer)});
      break;
    }
    case spool::RecordKind::stats: {
      const auto record = event.as<spool::StatsRecord>();
      writer_.append(at, trace::Stats{ids_.pool(head.pool), record.allocs, record.in_use, record.peak, record.largest,
                                      record.limit, record.pool_bytes});
      break;
    }
    case spool::RecordKind::oom:
      oom(event, at);
      break;
    case spool::RecordKind::setting:
      setting(event, at);
      break;
    case spool::RecordKind::report:
      report(event, at);
      break;
    case spool::RecordKind::context: {
      const auto record = event.as<spool::ContextRecord>();
      if (context_callback_) context_callback_(record);
      break;
    }
    default:
      break;
  }
  return true;
}

void ProcessTrace::free(const Event& event, const trace::At& at) {
  const auto record = event.as<spool::FreeRecord>();
  spool::FreeExtra extra{};
  if ((event.head.flags & spool::kFlagExtended) != 0) std::memcpy(&extra, event.bytes.data() + sizeof record, sizeof extra);
  LivePool& live = live_[event.head.pool];
  live.free(record.address);
  live.used_by(event.thread);
  writer_.free(at, ids_.pool(event.head.pool), record.address, extra.stream);
}

void ProcessTrace::region(const Event& event, const trace::At& at) {
  const auto record = event.as<spool::RegionRecord>();
  const bool returned = (event.head.flags & spool::kFlagReturned) != 0;
  live_[event.head.pool].region(record.address, record.bytes, returned);
  writer_.append(at, trace::Region{ids_.pool(event.head.pool), record.address, record.bytes, returned});
}

void ProcessTrace::setting(const Event& event, const trace::At& at) {
  const auto record = event.as<spool::SettingRecord>();
  const std::string* key = definitions_.text(record.key);
  const std::string* value = definitions_.text(record.value);
  if (key != nullptr && value != nullptr) settings_[*key] = *value;
  writer_.append(at, trace::Setting{ids_.text(record.key), ids_.text(record.value)});
}

void ProcessTrace::report(const Event& event, const trace::At& at) {
  const auto record = event.as<spool::ReportRecord>();
  std::array<trace::StringId, base::kReportTexts> texts;
  std::ranges::transform(record.text, texts.begin(), [&](std::uint32_t id) { return ids_.text(id); });
  if (const auto row = trace::report_of(static_cast<trace::EventKind>(event.head.small), texts, record.number))
    writer_.append(at, *row);
}

trace::SiteId ProcessTrace::site(const Event& event, const spool::AllocRecord& record, const spool::AllocExtra& extra) {
  trace::Site row;
  row.pool = ids_.pool(event.head.pool);
  row.requested = record.requested;
  row.op = ids_.text(record.op);
  row.region = ids_.text(event.head.small);
  row.dtype = event.head.dtype;
  row.shape = ids_.text(record.shape);
  row.stack = ids_.stack(extra.stack);
  row.stream = extra.stream;
  row.owner = ids_.text(extra.owner);
  row.flags = site_flags(event.head.flags, has_objects(header_, event.head.pool));
  const trace::SiteId id = writer_.site(row);
  const auto index = static_cast<std::size_t>(id);
  if (index >= sites_.size()) sites_.resize(index + 1);
  sites_[index] = row;
  return id;
}

bool ProcessTrace::alloc(const Event& event, const trace::At& at, bool /*last_call*/) {
  const auto record = event.as<spool::AllocRecord>();
  const auto extra = extra_of(event);
  const trace::SiteId where = site(event, record, extra);
  LiveBlock block;
  // Imported memory belongs to the process that exported it: it is shown, and counted there.
  block.granted = (event.head.flags & spool::kFlagImported) != 0 ? 0 : record.granted;
  block.requested = record.requested;
  block.site = static_cast<std::uint32_t>(where);
  block.op = record.op;
  block.owner = extra.owner;
  block.step = record.step;
  live_[event.head.pool].alloc(record.address, block);
  live_[event.head.pool].used_by(event.thread);
  writer_.alloc(at, {where, record.address, record.granted, record.step});
  return true;
}

// The trace format has no event for a free that failed: the block is allocated again, with a flag at its site.
void ProcessTrace::cancel_free(const Event& event, const trace::At& at) {
  const auto record = event.as<spool::FreeRecord>();
  const LiveBlock* block = live_[event.head.pool].cancel_free(record.address);
  if (block == nullptr) return;
  auto where = static_cast<trace::SiteId>(block->site);
  if (block->site < sites_.size()) {
    trace::Site again = sites_[block->site];
    again.flags |= trace::kSiteGivenAgain;
    where = writer_.site(again);
  }
  writer_.alloc(at, {where, record.address, block->granted, block->step});
}

void ProcessTrace::oom(const Event& event, const trace::At& at) {
  const auto record = event.as<spool::AllocRecord>();
  LivePool& live = live_[event.head.pool];
  live.oom();
  const bool final = (event.head.flags & spool::kFlagFinal) != 0;
  const spool::Pool* pool = event.head.pool < spool::kMaxPools ? &header_.pools[event.head.pool] : nullptr;
  trace::Oom row;
  row.site = site(event, record, extra_of(event));
  row.step = record.step;
  row.final = final;
  row.live = live.account().live;
  row.regions = live.account().regions;
  const bool affordable = live.blocks() <= oom_work_;
  if (affordable) oom_work_ -= live.blocks();
  row.largest_free = affordable ? live.largest_free() : 0;
  row.limit = pool != nullptr ? pool->limit_bytes.load(std::memory_order_relaxed) : 0;
  writer_.append(at, row);
  if (!final || !final_oom_callback_ || !affordable) return;
  const auto text = [&](std::uint32_t id) { return definitions_.text(id) != nullptr ? *definitions_.text(id) : std::string(); };
  OomAccount account;
  account.pool = pool != nullptr ? text(pool->name) : "";
  account.op = text(record.op);
  account.requested = record.requested;
  account.live = row.live;
  account.regions = row.regions;
  account.largest_free = row.largest_free;
  account.limit = row.limit;
  for (const auto& holder : live.holders(kHoldersShown))
    account.holders.push_back({text(holder.op != 0 ? holder.op : holder.owner), holder.bytes, holder.blocks});
  final_oom_callback_(account);
}

void ProcessTrace::setting(std::uint64_t time_us, std::string_view key, std::string_view value) {
  append(time_us, trace::Setting{writer_.string(key), writer_.string(value)});
}

void ProcessTrace::op_source(const spool::OpSourceRecord& source) {
  if (const std::string* file = definitions_.text(source.file); sources_ != nullptr && file != nullptr)
    sources_->see(*file, source.line);
  writer_.op_source(
      {ids_.text(source.op), ids_.text(source.file), source.line, ids_.text(source.function), ids_.text(source.layer)});
}

void ProcessTrace::totals(std::uint64_t time_us, bool last_call) {
  const auto load = [](const std::atomic<std::uint64_t>& value) { return value.load(std::memory_order_relaxed); };
  for (std::uint8_t i = 0; i < pools(header_); ++i) {
    const spool::Pool& pool = header_.pools[i];
    if (load(pool.allocs) == 0 && load(pool.region_bytes) == 0 && load(pool.ooms) == 0) continue;
    // The header shows a pool before its name is read from the spool; written now, it would be "unknown" for good.
    if (!last_call && ids_.pool_missing(i)) continue;
    trace::Totals row;
    row.pool = ids_.pool(i);
    row.allocs = load(pool.allocs);
    row.frees = load(pool.frees);
    row.live = load(pool.live_bytes);
    row.peak = load(pool.peak_bytes);
    row.largest = load(pool.largest_bytes);
    row.regions = load(pool.region_bytes);
    row.ooms = load(pool.ooms);
    row.order_exact = order_exact(i, last_call);
    row.before = load(pool.before_bytes);
    append(time_us, row);
  }
}

// Of a pool that a single thread uses the order is known even if its allocator's lock was not reached.
bool ProcessTrace::order_exact(std::uint8_t index, bool last_call) const {
  const spool::Pool& pool = header_.pools[index];
  if ((pool.flags.load(std::memory_order_relaxed) & spool::kPoolOrderExact) != 0) return true;
  const PoolAccount& seen = live_[index].account();
  const auto equal = [](std::uint64_t mine, const std::atomic<std::uint64_t>& theirs) {
    return mine == theirs.load(std::memory_order_relaxed);
  };
  // Before the end events are under way, and the next totals will know of them.
  return !seen.several_threads && (!last_call || (equal(seen.allocs, pool.allocs) && equal(seen.frees, pool.frees)));
}

std::string ProcessTrace::differences() const {
  std::string text;
  for (std::uint8_t i = 0; i < pools(header_); ++i) {
    const spool::Pool& pool = header_.pools[i];
    const PoolAccount& ours = live_[i].account();
    // Blocks from before the recording are in the running total until they are freed, and never in the events.
    const std::uint64_t before = pool.before_bytes.load(std::memory_order_relaxed);
    const auto compare = [&](std::string_view what, std::uint64_t mine, const std::atomic<std::uint64_t>& theirs,
                             std::uint64_t unseen = 0) {
      const std::uint64_t other = theirs.load(std::memory_order_relaxed);
      if (mine <= other && other - mine <= unseen) return;
      const std::string* name = definitions_.text(pool.name);
      text += fmt::format("{}{}: {} {} in the events, {} counted", text.empty() ? "" : "; ", name != nullptr ? *name : "?", what,
                          mine, other);
    };
    compare("allocations", ours.allocs, pool.allocs);
    compare("frees", ours.frees, pool.frees);
    compare("live bytes", ours.live, pool.live_bytes, before);
    if (order_exact(i, true)) compare("peak bytes", ours.peak, pool.peak_bytes, before);
  }
  return text;
}

LivePool* ProcessTrace::live_pool(std::string_view name, std::int64_t device) {
  for (std::uint8_t i = 0; i < pools(header_); ++i) {
    const std::string* text = definitions_.text(header_.pools[i].name);
    if (text != nullptr && *text == name && header_.pools[i].device == device) return &live_[i];
  }
  return nullptr;
}

std::uint64_t ProcessTrace::live_twice() const {
  std::uint64_t sum = 0;
  for (const LivePool& pool : live_) sum += pool.account().live_twice;
  return sum;
}

std::optional<std::string> ProcessTrace::recorded_setting(std::string_view key) const {
  const auto found = settings_.find(key);
  return found == settings_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace vramscope::collect
