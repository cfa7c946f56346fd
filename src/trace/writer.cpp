#include "trace/writer.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "support/file.h"
#include "support/secret_hash.h"
#include "trace/block.h"
#include "trace/chunk.h"
#include "trace/compact.h"
#include "trace/dictionary.h"
#include "trace/footer.h"
#include "trace/limit.h"
#include "trace/names.h"
#include "trace/run_numbers.h"
#include "trace/thin.h"

namespace vramscope::trace {
namespace {

using support::Buffer;

// For totals, losses, how the process ended, and the footer.
constexpr std::uint64_t kRoomForTheEnd = 64 * 1024;

struct LiveKey {
  std::uint64_t address;
  PoolId pool;
  bool operator==(const LiveKey&) const = default;
};
struct LiveHash {
  std::size_t operator()(const LiveKey& key) const {
    return support::SecretHash{}(key.address ^ std::uint64_t{std::to_underlying(key.pool)} << 56);
  }
};

std::uint64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace

struct Writer::State {
  State(const WriterOptions& chosen, std::unique_ptr<support::Sink> to)
      : options(chosen), sink(std::move(to)), names(chosen.anonymize) {}

  WriterOptions options;
  std::unique_ptr<support::Sink> sink;
  Names names;
  DictionarySizes written = {0, 1, 0, 0, 0, 1, 0, 0};  // those with id 0 need no writing

  RunNumbers runs;

  Chunk chunk;  // not yet written
  std::uint64_t next_event = 0;
  std::uint64_t next_alloc = 0;
  struct Live {
    std::uint64_t ordinal;
    std::uint64_t granted;
  };
  tsl::robin_map<LiveKey, Live, LiveHash> live;

  std::filesystem::path path;  // empty for a sink that is not a file
  std::optional<TraceLimit> limit;
  PeakTracker peaks;

  std::vector<IndexEntry> index;
  std::uint64_t lost = 0;     // events that could not be written and of which the file does not know yet
  std::uint64_t dropped = 0;  // all that could not be written
  bool tells_loss = false;    // the chunk begins with a `lost` event of ours
  Status deferred;            // what went wrong while appending, reported by the next flush
  bool finished = false;

  template <typename Row>
  void append(const At& at, EventKind kind, auto Tables::* table, const Row& row) {
    tell_loss_first(at);
    push(at, kind);
    (chunk.tables.*table).push(row);
    write_if_full();
  }
  void append(const At& at, const Report& report) {
    tell_loss_first(at);
    push(at, push_report(chunk.tables, report));
    write_if_full();
  }

  void tell_loss_first(const At& at) {
    if (lost == 0 || !chunk.kind.empty()) return;
    tells_loss = true;
    push(at, EventKind::lost);
    chunk.tables.lost.push({LossKind::trace_write, lost});
  }
  void write_if_full() {
    if (chunk.kind.size() < kMaxChunkEvents) return;
    if (Status status = write_out(); !status) deferred = std::move(status);
  }

  // Where the next event will stand in its chunk.
  std::size_t next_index() const { return chunk.kind.size() + (lost > 0 && chunk.kind.empty() ? 1 : 0); }

  void push(const At& at, EventKind kind) {
    chunk.kind.push_back(kind);
    chunk.seq.push_back(at.seq);
    chunk.time_us.push_back(at.time_us);
    chunk.thread.push_back(at.thread);
    ++next_event;
  }

  void put(Buffer& out, const BlockHead& head, support::ByteSpan payload, std::vector<IndexEntry>& added) {
    const std::size_t at = out.size();
    put_block(out, head, payload, options.zstd_level);
    // Read back rather than remembered, so that the index cannot differ from the file.
    added.push_back({sink->size() + at, *take_block_head(support::ByteSpan(out).subspan(at))});
  }

  // Everything new in the dictionaries, then the chunk, by one write.
  Status write_out() {
    Buffer out;
    Buffer payload;
    std::vector<IndexEntry> added;
    DictionarySizes now_written = written;
    // Many of the new names belong to dropped events only: they must not use up the room for the last events on a full disk.
    const bool few = dropped > 0 && chunk.tables.alloc.size() == 0 && chunk.tables.oom.size() == 0;
    while (encode_additions(names.all(), now_written, payload, few ? Additions::without_sites : Additions::all))
      put(out, {.type = std::to_underlying(BlockType::dictionary)}, payload, added);
    if (!chunk.kind.empty()) {
      encode_chunk(chunk, {}, names.all().sites, payload);
      put(out,
          {.type = std::to_underlying(BlockType::events),
           .first_event = chunk.first_event,
           .first_alloc = chunk.first_alloc,
           .events = static_cast<std::uint32_t>(chunk.kind.size()),
           .allocs = static_cast<std::uint32_t>(chunk.tables.alloc.size())},
          payload, added);
    }
    if (out.empty()) return {};
    Status status = sink->append(out);
    Status problem;
    if (status) {
      written = now_written;
      index.insert(index.end(), added.begin(), added.end());
      if (tells_loss) lost = 0;
      if (limit) problem = keep_limit(added);
    } else {
      drop_chunk();
    }
    const At at = chunk.kind.empty() ? At{} : At{chunk.seq.back(), chunk.time_us.back(), chunk.thread.back()};
    start_chunk();
    // Nothing is lost, the file only gets larger; the trace contains the reason.
    if (!problem) {
      push(at, EventKind::setting);
      chunk.tables.setting.push(
          names.shown(Setting{names.string("vramscope.trace_limit"), names.string(problem.error().message)}));
    }
    return status;
  }

  Status keep_limit(std::span<const IndexEntry> added) {
    const std::vector<Peak> chunk_peaks = peaks.take();
    for (const IndexEntry& block : added) {
      if (block.head.type == std::to_underlying(BlockType::events)) {
        limit->wrote(block, chunk, chunk_peaks, names.all().sites);
      } else {
        limit->wrote(block);
      }
    }
    if (!limit->due(sink->size())) return {};
    auto rewritten = limit->rewrite(names.all());
    if (!rewritten) return std::unexpected(rewritten.error());
    sink = std::move(rewritten->file);
    sink->keep_free(kRoomForTheEnd);
    index = std::move(rewritten->index);
    return {};
  }

  // Keeps memory bounded while the disk is full. The ordinals of its allocations stay unused.
  void drop_chunk() {
    const std::uint64_t events = chunk.kind.size() - (tells_loss ? 1 : 0);
    lost += events;
    dropped += events;
    next_event = chunk.first_event;
    (void)peaks.take();
  }

  void start_chunk() {
    for_each_table(chunk.tables, [](EventKind, auto& table) {
      for_each_column(table, [](std::uint64_t, std::string_view, std::string_view, auto& column) { column.clear(); });
    });
    chunk.kind.clear();
    chunk.seq.clear();
    chunk.time_us.clear();
    chunk.thread.clear();
    chunk.first_event = next_event;
    chunk.first_alloc = next_alloc;
    tells_loss = false;
  }

  // Where it fails (a full disk) the file stays as it is, which is only larger.
  void compact_if_worth() {
    if (path.empty() || !worth_compacting(index)) return;
    auto compacted = compact(path, names.all(), index);
    if (!compacted) return;
    sink = std::move(compacted->file);
    index = std::move(compacted->index);
  }

  Status write_footer() {
    Buffer out;
    Buffer payload;
    std::vector<IndexEntry> added;
    const std::uint64_t offset = sink->size();
    std::span<const IndexEntry> rest = index;
    do {
      const std::size_t rows = std::min(rest.size(), kMaxIndexRows);
      encode_footer(rest.first(rows), payload);
      put(out, {.type = std::to_underlying(BlockType::footer)}, payload, added);
      rest = rest.subspan(rows);
    } while (!rest.empty());
    put_trailer(out, offset);
    return sink->append(out);
  }
};

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;

Writer::~Writer() {
  // The error cannot be reported here. Call flush() or finish() to get it.
  if (state_ == nullptr || state_->finished) return;
  [[maybe_unused]] const Status ignored = state_->write_out();
}

Result<Writer> Writer::create(const std::filesystem::path& path, const WriterOptions& options) {
  auto file = support::AppendFile::create(path);
  if (!file) return std::unexpected(file.error());
  auto writer = create(std::move(*file), options);
  std::error_code ignored;
  if (!writer) std::filesystem::remove(path, ignored);  // not even the header fit: an empty file is not a trace
  if (writer) writer->state_->path = path;
  if (writer && options.limit_bytes > 0) writer->state_->limit.emplace(path, options.limit_bytes, options.zstd_level);
  return writer;
}

Result<Writer> Writer::create(std::unique_ptr<support::Sink> sink, const WriterOptions& options) {
  auto state = std::make_unique<State>(options, std::move(sink));
  Buffer header;
  put_header(header, {kMajor, kMinor, options.start_realtime_us != 0 ? options.start_realtime_us : now_us()});
  state->sink->keep_free(kRoomForTheEnd);
  if (Status status = state->sink->append(header); !status) return std::unexpected(status.error());
  return Writer(std::move(state));
}

StringId Writer::string(std::string_view text) { return state_->names.string(text); }
PoolId Writer::pool(const Pool& pool) { return state_->names.pool(pool); }
SiteId Writer::site(const Site& site) { return state_->names.site(site); }
FrameId Writer::frame(const Frame& frame) { return state_->names.frame(frame); }
StackId Writer::stack(std::uint64_t hash, std::span<const FrameId> frames, std::uint64_t cut) {
  return state_->names.stack(hash, frames, cut);
}
ThreadId Writer::thread(const Thread& thread) { return state_->names.thread(thread); }
void Writer::op_source(const OpSource& source) { state_->names.op_source(source); }
void Writer::source_file(const SourceFile& file) { state_->names.source_file(file); }
void Writer::source_line(const SourceLine& line) { state_->names.source_line(line); }

std::uint64_t Writer::alloc(const At& at, const Alloc& event) {
  State& state = *state_;
  const PoolId pool = state.names.all().sites[std::to_underlying(event.site)].pool;
  const std::uint64_t ordinal = state.next_alloc;
  if (!state.live.try_emplace({event.address, pool}, State::Live{ordinal, event.granted}).second) {
    // The block that is still there lost its free: it ended before this one began, and must not seem to be live for ever.
    free(at, pool, event.address, 0);
    state.live[{event.address, pool}] = {ordinal, event.granted};
  }
  ++state.next_alloc;
  if (state.limit) state.peaks.alloc(pool, event.granted, state.next_index());
  Alloc row = event;
  row.step = state.runs.number(event.step);
  state.append(at, EventKind::alloc, &Tables::alloc, row);
  return ordinal;
}

std::uint64_t Writer::free(const At& at, PoolId pool, std::uint64_t address, std::uint64_t stream) {
  State& state = *state_;
  const auto found = state.live.find({address, pool});
  std::uint64_t ordinal = kNone;
  if (found != state.live.end()) {
    ordinal = found->second.ordinal;
    if (state.limit) state.peaks.free(pool, found->second.granted);
    state.live.erase(found);
  }
  state.append(at, EventKind::free_, &Tables::free, Free{ordinal, address, pool, stream});
  return ordinal;
}

void Writer::append(const At& at, const Region& event) { state_->append(at, EventKind::region, &Tables::region, event); }
void Writer::append(const At& at, const Mark& event) {
  if (state_->limit && ends_segment(event.kind)) state_->peaks.boundary(state_->next_index());
  state_->append(at, EventKind::mark, &Tables::mark, state_->names.shown(event));
}
void Writer::append(const At& at, const Tag& event) { state_->append(at, EventKind::tag, &Tables::tag, event); }
void Writer::append(const At& at, const Stats& event) { state_->append(at, EventKind::stats, &Tables::stats, event); }
void Writer::append(const At& at, const Oom& event) {
  Oom row = event;
  row.step = state_->runs.number(event.step);
  state_->append(at, EventKind::oom, &Tables::oom, row);
}
void Writer::append(const At& at, const DeviceSample& event) {
  state_->append(at, EventKind::device_sample, &Tables::device_sample, event);
}
void Writer::append(const At& at, const HostSample& event) {
  state_->append(at, EventKind::host_sample, &Tables::host_sample, event);
}
void Writer::append(const At& at, const Setting& event) {
  state_->append(at, EventKind::setting, &Tables::setting, state_->names.shown(event));
}
void Writer::append(const At& at, const Lost& event) { state_->append(at, EventKind::lost, &Tables::lost, event); }
void Writer::append(const At& at, const Context& event) { state_->append(at, EventKind::context, &Tables::context, event); }
void Writer::append(const At& at, const Totals& event) { state_->append(at, EventKind::totals, &Tables::totals, event); }
void Writer::append(const At& at, const Report& event) { state_->append(at, state_->names.shown(event)); }

Status Writer::flush() {
  Status status = state_->write_out();
  if (Status before = std::exchange(state_->deferred, Status{}); !before) return before;
  return status;
}

Status Writer::finish() {
  if (state_->finished) return {};
  state_->sink->keep_free(0);
  if (Status status = flush(); !status) return status;
  state_->compact_if_worth();
  if (Status status = state_->write_footer(); !status) return status;
  state_->finished = true;
  return {};
}

std::uint64_t Writer::events() const { return state_->next_event; }
std::uint64_t Writer::dropped() const { return state_->dropped; }
std::uint64_t Writer::bytes() const { return state_->sink->size(); }

}  // namespace vramscope::trace
