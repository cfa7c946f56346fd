#include "collect/session.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "collect/spool/spool_folder.h"
#include "collect/spool/spool_place.h"
#include "collect/write/replay.h"
#include "support/units.h"

namespace vramscope::collect {

namespace {

constexpr std::uint64_t kFlushUs = 1'000'000;
constexpr std::uint64_t kTotalsUs = 5'000'000;
constexpr std::uint64_t kReclaimUs = 1'000'000;
constexpr std::size_t kReleaseEarly = 64 * 1024;  // events waiting
constexpr std::size_t kReleaseEvery = 1024;
constexpr std::uint64_t kCrowdedReclaimUs = 10'000;

std::string command_of(const spool::Header& header) {
  const std::size_t bytes = std::min<std::size_t>(header.command_bytes, sizeof header.command);
  std::string text(header.command, bytes);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const std::filesystem::path& path, const CollectOptions& options,
                                               const TickClock& clock, const Sampler& sampler) {
  auto spool = SpoolFile::open(path, options.recovering ? SpoolFile::Changes::copy : SpoolFile::Changes::shared);
  if (!spool) return std::unexpected(spool.error());
  return std::unique_ptr<Session>(new Session(std::move(*spool), options, clock, sampler));
}

Session::Session(SpoolFile spool, const CollectOptions& options, const TickClock& clock, const Sampler& sampler)
    : options_(options),
      clock_(clock),
      sampler_(sampler),
      spool_(std::move(spool)),
      pid_(spool_.header().pid),
      threads_visible_(maps_spool(pid_) && proc::namespace_pids(pid_).size() == 1),
      process_(find_process()),
      start_ticks_(proc::start_ticks(process_).value_or(0)),
      clock_kind_(spool_.header().clock),
      monotonic0_ns_(spool_.header().monotonic0_ns),
      realtime0_ns_(spool_.header().realtime0_ns),
      command_(command_of(spool_.header())),
      merger_({.events = options.merge_events}),
      identity_(sampler.identify(process_)) {
  if (options.recovering)
    definitions_.load(beside_spool(".defs"));
  else
    definitions_.keep_in(beside_spool(".defs"));
}

std::filesystem::path Session::beside_spool(const char* extension) const {
  return std::filesystem::path(spool_.path()).replace_extension(extension);
}

std::uint64_t Session::time_us(std::uint64_t ticks) const {
  const std::uint64_t ns = clock_.to_monotonic_ns(clock_kind_, ticks);
  const std::uint64_t start = monotonic0_ns_;
  return ns > start ? (ns - start) / 1000 : 0;
}

std::uint64_t Session::since_start_us() const {
  const std::uint64_t now = monotonic_ns();
  const std::uint64_t start = monotonic0_ns_;
  return now > start ? (now - start) / 1000 : 0;
}

// A header that something has written over must not make us believe in any number of events: nobody draws more than one number in
// each nanosecond.
std::uint64_t Session::drawn() const { return std::min(spool_.header().next_seq.load(std::memory_order_acquire), most_drawn()); }

std::uint64_t Session::most_drawn() const {
  const std::uint64_t us = since_start_us();
  return us == 0 ? SeqRanges::kNone : (us + 1'000'000) * 1000;
}

void Session::take(std::uint32_t thread, const spool::RecordHead& head, std::span<const std::byte> record) {
  if (Definitions::is_definition(head.kind)) {
    definitions_.add(head, record);
    return;
  }
  Event event;
  event.head = head;
  event.thread = thread;
  std::memcpy(event.bytes.data(), record.data(), std::min(record.size(), event.bytes.size()));
  // Looked up anew only when needed: the recorder's threads fight over this cache line as it is.
  if (head.seq >= drawn_) drawn_ = drawn();
  if (head.seq < drawn_) highest_ = std::max(highest_, head.seq);
  merger_.add(event, drawn_);
  // A full spool is more than should be held in memory at once.
  if (merger_.waiting() >= kReleaseEarly && merger_.waiting() % kReleaseEvery == 0)
    merger_.release_due([this](const Event& due, bool, bool last_call) { return deliver(due, last_call); });
}

std::size_t Session::poll(std::uint64_t now_us) {
  // Before the rest is read, which may take longer than the process lived.
  if (!ended_us_ && is_dead()) ended_us_ = since_start_us();
  const std::size_t records = drain_.pass(spool_, [this](std::uint32_t thread, const spool::RecordHead& head,
                                                         std::span<const std::byte> record) { take(thread, head, record); });
  check_length();
  merger_.release(now_us, [this](const Event& event, bool, bool last_call) { return deliver(event, last_call); });
  // Where most segments belong to threads, some of these may be gone: short-lived threads must not use up the spool.
  const bool crowded = drain_.owned() * 2 > spool_.segments();
  if (now_us - last_reclaim_us_ >= (crowded ? kCrowdedReclaimUs : kReclaimUs)) {
    last_reclaim_us_ = now_us;
    drain_.reclaim(spool_, [this](std::uint32_t tid) { return thread_lives(tid); });
  }
  flush_if_due(now_us);
  return records;
}

bool Session::deliver(const Event& event, bool last_call) {
  if (trace_ == nullptr && !cannot_write_) {
    // A process that never used memory leaves no trace, whatever its environment was and whatever it made that was not run.
    if (event.head.kind == spool::RecordKind::setting || event.head.kind == spool::RecordKind::report) {
      early_.push_back(event);
      return true;
    }
    open_trace();
  }
  if (trace_ == nullptr) {
    ++unwritten_;
    return true;
  }
  return trace_->write(event, time_us(event.head.ticks), last_call);
}

Result<trace::Writer> Session::create_file() {
  trace::WriterOptions options;
  options.start_realtime_us = realtime0_ns_ / 1000;
  options.limit_bytes = options_.trace_limit;
  options.anonymize = options_.anonymize;
  if (!options_.recovering) return create_new(options);
  fresh_ = std::make_unique<FreshTrace>(options_.output, trace_stem(), beside_spool(kFreshNote));
  path_ = fresh_->path();
  return trace::Writer::create(path_, options);
}

Result<trace::Writer> Session::create_new(const trace::WriterOptions& options) {
  const std::string stem = trace_stem();
  for (int n = 1;; ++n) {
    path_ = options_.output / trace_name(stem, n);
    if (std::filesystem::exists(std::filesystem::symlink_status(path_))) continue;
    // First the note: a collector that is killed in between leaves nothing that a recovery does not know.
    note_trace(beside_spool(kTraceNote), path_);
    auto writer = trace::Writer::create(path_, options);
    if (writer || n > 1000 || !std::filesystem::exists(path_)) return writer;
  }
}

std::string Session::trace_stem() const {
  const auto seconds = static_cast<std::time_t>(realtime0_ns_ / 1'000'000'000);
  return fmt::format("{}-{}-{:%Y%m%dT%H%M%SZ}", options_.host, pid_, fmt::gmtime(seconds));
}

void Session::open_trace() {
  auto writer = create_file();
  if (!writer) {
    write_failed(writer.error());
    return;
  }
  trace_ = std::make_unique<ProcessTrace>(std::move(*writer), definitions_, spool_.header());
  trace_->name_native_frames(options_.native_symbol);
  keep_sources();
  // A program that keeps failing does not get the same message forever.
  trace_->on_final_oom([this](const OomAccount& account) {
    constexpr std::uint64_t kDescribedInFull = 3;
    if (++ooms_described_ <= kDescribedInFull) options_.say(describe(account));
    if (ooms_described_ == kDescribedInFull) options_.say("vramscope: further failures are recorded silently\n");
  });
  trace_->on_context([this](const spool::ContextRecord& record) { note_context(record); });
  if (stored_) {
    merger_.set_stored(replay(stored_->reader, *trace_));
  } else {
    write_beginning();
  }
  for (const Event& event : std::exchange(early_, {})) trace_->write(event, time_us(event.head.ticks), true);
}

// Never while recovering: the spool may be somebody else's, and must not make the person who recovers it read own files.
void Session::keep_sources() {
  if (!options_.keep_sources || options_.anonymize || options_.recovering) return;
  sources_.emplace(spool_.owner(), start_realtime_us());
  trace_->keep_sources(&*sources_);
}

void Session::write_beginning() {
  const auto set = [this](std::string_view key, const std::string& value) { trace_->setting(0, key, value); };
  set("process.pid", fmt::format("{}", pid_));
  set("process.command", command_);
  set("process.start", fmt::format("{}", realtime0_ns_ / 1000));
  set("host", options_.host);
  // What the process could take at most: the machine's memory, or what its container leaves.
  const auto pages = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  const auto physical = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  set("host.memory_bytes", fmt::format("{}", std::min(physical, cgroup_room())));
  set("vramscope.version", VRAMSCOPE_VERSION);
  set("sample_hz", fmt::format("{}", options_.sample_hz));
  for (const auto& [key, value] : options_.settings) set(key, value);
  set("vramscope.source", options_.anonymize ? "left out by --anonymize" : sources_ ? "kept" : "left out by --no-source");
  set("clock", clock_kind_ == spool::Clock::tsc ? "tsc" : "mono");
}

void Session::write_failed(const Error& error) {
  if (problem_.empty()) problem_ = error.message;
  if (!cannot_write_ && !options_.recovering)
    options_.say(
        fmt::format("vramscope: process {}: cannot write the trace, events are lost from now on: {}\n", pid_, error.message));
  cannot_write_ = true;
}

// Sources are reported when a function is traced, often before the names they use have arrived from other threads. They are
// written in the order in which the ops were made, which is the model's: segments arrive in any order, but ids of names grow with
// time.
void Session::write_op_sources(bool last_call) {
  std::vector<spool::OpSourceRecord> sources = definitions_.take_op_sources();
  std::ranges::stable_sort(sources, {}, &spool::OpSourceRecord::op);
  const auto known = [&](const spool::OpSourceRecord& source) {
    return definitions_.text(source.op) && definitions_.text(source.file) && definitions_.text(source.function) &&
           definitions_.text(source.layer);
  };
  const auto waiting = last_call ? sources.end() : std::ranges::find_if_not(sources, known);
  std::for_each(sources.begin(), waiting, [&](const auto& source) { trace_->op_source(source); });
  std::for_each(waiting, sources.end(), [&](const auto& source) { definitions_.return_op_source(source); });
}

void Session::flush_if_due(std::uint64_t now_us) {
  // Segments are given back after a flush only. A process that writes fast must neither run out of them nor hold many: they count
  // as its memory. This many are about one full chunk of the trace.
  constexpr std::size_t kHeldAtMost = 4 * spool::kExtentSegments;
  const std::size_t limit =
      spool_.was_removed() ? spool_.segments() : spool_.header().segment_limit.load(std::memory_order_relaxed);
  const bool pressed = drain_.held() > std::clamp<std::size_t>(limit / 4, spool::kExtentSegments / 2, kHeldAtMost);
  if (!pressed && now_us - last_flush_us_ < kFlushUs) return;
  last_flush_us_ = now_us;
  const bool with_totals = now_us - last_totals_us_ >= kTotalsUs;
  if (with_totals) last_totals_us_ = now_us;
  flush(with_totals);
}

void Session::flush(bool with_totals) {
  definitions_.store();
  if (trace_ != nullptr) {
    write_op_sources(false);
    if (sources_) sources_->write_to(trace_->writer(), false);
    if (with_totals) trace_->totals(since_start_us(), false);
    if (Status status = trace_->writer().flush(); !status) {
      write_failed(status.error());
    } else {
      cannot_write_ = false;
    }
  }
  if ((trace_ != nullptr || cannot_write_) && !options_.recovering) drain_.give_back(spool_, merger_.next());
}

void Session::count_losses() {
  const auto recorder = [&](spool::LossKind loss) {
    return spool_.header().lost[static_cast<std::size_t>(loss)].load(std::memory_order_relaxed);
  };
  std::uint64_t missing = merger_.missing();
  const auto take_from_missing = [&](std::uint64_t count) {
    const std::uint64_t part = std::min(missing, count);
    missing -= part;
    return part;
  };
  // The recorder counts whole segments, also what we had read from them already: the numbers that never came are the truth.
  losses_[trace::LossKind::overwritten] = take_from_missing(recorder(spool::LossKind::overwritten));
  losses_[trace::LossKind::no_segment] = recorder(spool::LossKind::no_segment);
  take_from_missing(recorder(spool::LossKind::no_segment));
  losses_[trace::LossKind::reentered] = recorder(spool::LossKind::reentered);
  losses_[trace::LossKind::names] = recorder(spool::LossKind::names) + (trace_ != nullptr ? trace_->names_missing() : 0);
  losses_[trace::LossKind::gap] = missing;
  losses_[trace::LossKind::late] = merger_.late();
  losses_[trace::LossKind::trace_write] = unwritten_;
  std::erase_if(losses_, [](const auto& entry) { return entry.second == 0; });
}

TraceInfo Session::finish(const std::map<std::string, std::string>& ending) {
  is_over_ = true;
  const auto sink = [this](const Event& event, bool, bool last_call) { return deliver(event, last_call); };
  const std::uint64_t now_us = monotonic_ns() / 1000;
  while (poll(now_us) > 0) continue;
  merger_.finish(spool_.header().next_seq.load(std::memory_order_acquire) <= most_drawn() ? drawn() : highest_ + 1, sink);
  write_contexts(true);
  // By themselves: on a full disk they must not take the account of what is lost with them.
  if (trace_ != nullptr) {
    write_op_sources(true);
    if (sources_) sources_->write_to(trace_->writer(), true);
    flush(false);
  }
  count_losses();
  TraceInfo result = info();
  if (trace_ == nullptr) return result;
  const std::uint64_t at = ended_us_.value_or(since_start_us());
  trace_->totals(at, true);
  const std::string differences = cut_ ? "unknown: the spool was truncated" : trace_->differences();
  result.totals_check = differences.empty() ? "equal" : differences;
  trace_->setting(at, "vramscope.totals_check", result.totals_check);
  for (const auto& [key, value] : ending) trace_->setting(at, key, value);
  for (const auto& [kind, count] : losses_) trace_->append(at, trace::Lost{kind, count});
  const Status status = trace_->writer().finish();
  if (!status) write_failed(status.error());
  // The writer has recorded it in the file, if possible.
  if (const std::uint64_t dropped = trace_->writer().dropped(); dropped > 0)
    result.losses[trace::LossKind::trace_write] += dropped;
  result.complete = status.has_value();
  result.events = trace_->writer().events();
  result.bytes = trace_->writer().bytes();
  if (options_.recovering) keep_recovered(result);
  return result;
}

TraceInfo Session::info() const {
  TraceInfo info;
  info.path = path_;
  info.pid = pid_;
  info.command = command_;
  info.losses = losses_;
  if (trace_ != nullptr) {
    info.events = trace_->writer().events();
    info.bytes = trace_->writer().bytes();
  }
  return info;
}

void Session::remove_files() {
  std::error_code ignored;
  for (const char* extension : {".spool", ".lock", ".defs", kTraceNote, kFreshNote})
    std::filesystem::remove(beside_spool(extension), ignored);
}

}  // namespace vramscope::collect
