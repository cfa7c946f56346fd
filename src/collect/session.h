// One recorded process, from the appearance of its spool to the end of its trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/options.h"
#include "collect/order/merger.h"
#include "collect/sample/sampler.h"
#include "collect/sample/tick_clock.h"
#include "collect/spool/definitions.h"
#include "collect/spool/drain.h"
#include "collect/spool/spool_file.h"
#include "collect/write/fresh_trace.h"
#include "collect/write/process_trace.h"
#include "collect/write/source_capture.h"
#include "collect/write/stored_trace.h"
#include "support/result.h"

namespace vramscope::collect {

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const std::filesystem::path& spool, const CollectOptions& options,
                                               const TickClock& clock, const Sampler& sampler);

  proc::Pid pid() const { return pid_; }          // as the process knows itself
  proc::Pid process() const { return process_; }  // as we know it; 0 if it cannot be seen from here
  const std::filesystem::path& spool_path() const { return spool_.path(); }
  const spool::Header& header() const { return spool_.header(); }
  // Reads what the process has written since the last call, and writes it to the trace when that is due. Returns the number of
  // records.
  std::size_t poll(std::uint64_t now_us);
  // Records samples of the devices and the host.
  void sample(std::uint64_t now_us);
  // A context is expected, or the first sample that lists it: sample often.
  bool wants_fast_samples() const { return !is_over_ && (!context_seen_ || sampler_.last_sample_us() == context_sample_us_); }
  // Nobody holds the process's lock, and the process has ended, has replaced itself (exec), or has released the spool.
  bool has_ended() const;
  // The process may continue without being recorded.
  void stop_recording() { spool_.header().stop.store(1, std::memory_order_release); }

  // Writes the rest of the trace. `ending`: settings to add, such as process.exit_code.
  TraceInfo finish(const std::map<std::string, std::string>& ending);
  bool has_trace() const { return trace_ != nullptr; }
  // What is known so far.
  TraceInfo info() const;
  // The files of the spool, to be removed when the trace is finished.
  void remove_files();

  // The name of its trace, without number and extension.
  std::string trace_stem() const;
  std::uint64_t start_realtime_us() const { return realtime0_ns_ / 1000; }

  // Recover, before the first poll(): what another collector stored of this process, and whether the spool has more.
  std::optional<StoredTrace> find_stored() const;
  std::uint64_t last_seq_in_spool();
  // Continues after it.
  void continue_from(StoredTrace stored);
  // After finish(): why the trace lacks something that is in the spool; empty if it has everything.
  const std::string& problem() const { return problem_; }

 private:
  Session(SpoolFile spool, const CollectOptions& options, const TickClock& clock, const Sampler& sampler);

  proc::Pid find_process() const;
  bool maps_spool(proc::Pid pid) const;
  bool is_dead() const;
  void check_length();
  bool thread_lives(std::uint32_t tid) const;
  void take(std::uint32_t thread, const spool::RecordHead& head, std::span<const std::byte> record);
  bool deliver(const Event& event, bool last_call);
  void open_trace();
  Result<trace::Writer> create_file();
  Result<trace::Writer> create_new(const trace::WriterOptions& options);
  std::filesystem::path beside_spool(const char* extension) const;
  StoredSearch stored_search() const;
  void keep_recovered(TraceInfo& result);
  void write_beginning();
  void keep_sources();
  void flush(bool with_totals);
  void flush_if_due(std::uint64_t now_us);
  void write_failed(const Error& error);
  void write_op_sources(bool last_call);
  void count_losses();
  void write_contexts(bool last_call);
  std::uint64_t pinned_bytes() const;
  bool uses_device(std::size_t device) const;
  std::size_t device_index(std::int64_t ordinal) const;
  void note_context(const spool::ContextRecord& record);
  std::uint64_t time_us(std::uint64_t ticks) const;
  std::uint64_t since_start_us() const;
  std::uint64_t drawn() const;
  std::uint64_t most_drawn() const;

  const CollectOptions& options_;
  const TickClock& clock_;
  const Sampler& sampler_;
  SpoolFile spool_;
  proc::Pid pid_;
  bool threads_visible_;  // under the numbers that they write into the spool
  proc::Pid process_;
  std::uint64_t start_ticks_;
  // Copies: a header that is damaged later must not move the events.
  spool::Clock clock_kind_;
  std::uint64_t monotonic0_ns_;
  std::uint64_t realtime0_ns_;
  std::string command_;
  Drain drain_;
  Definitions definitions_;
  Merger merger_;
  std::optional<SourceCapture> sources_;
  std::optional<StoredTrace> stored_;  // recover: what comes before
  std::unique_ptr<FreshTrace> fresh_;  // recover: where it goes
  std::unique_ptr<ProcessTrace> trace_;
  std::filesystem::path path_;
  std::vector<Event> early_;  // settings and reports from before there is anything to trace
  std::map<trace::LossKind, std::uint64_t> losses_;
  DeviceIdentity identity_;
  std::vector<std::optional<DeviceReading>> before_;  // per device: before the process was on it
  std::vector<spool::ContextRecord> contexts_;        // not written yet
  std::vector<trace::DeviceSample> last_device_;
  trace::HostSample last_host_;
  std::uint64_t last_sample_written_us_ = 0;
  std::optional<std::uint64_t> ended_us_;  // since the start, when the process was found dead
  std::uint64_t ooms_described_ = 0;
  std::uint64_t drawn_ = 1;
  std::uint64_t highest_ = 0;  // number seen
  std::uint64_t last_flush_us_ = 0;
  std::uint64_t last_totals_us_ = 0;
  std::uint64_t last_reclaim_us_ = 0;
  std::uint64_t unwritten_ = 0;
  bool cannot_write_ = false;
  bool cut_ = false;  // the spool was truncated
  std::string problem_;
  std::uint64_t context_sample_us_ = 0;  // the last sample before the context was seen
  bool context_seen_ = false;
  bool is_over_ = false;
};

}  // namespace vramscope::collect
