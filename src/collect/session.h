// One recorded process, from the appearance of its spool to the end of its trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/definitions.h"
#include "collect/drain.h"
#include "collect/merger.h"
#include "collect/options.h"
#include "collect/process_trace.h"
#include "collect/sampler.h"
#include "collect/spool_file.h"
#include "collect/tick_clock.h"
#include "support/result.h"

namespace vramscope::collect {

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const std::filesystem::path& spool, const CollectOptions& options,
                                               const TickClock& clock, const Sampler& sampler);

  proc::Pid pid() const { return pid_; }
  const std::filesystem::path& spool_path() const { return spool_.path(); }
  const spool::Header& header() const { return spool_.header(); }
  // Takes what the process wrote since the last time, and writes it to the trace when that is due. How many records there were.
  std::size_t poll(std::uint64_t now_us);
  // Notes what the devices and the host say.
  void sample(std::uint64_t now_us);
  // A context is expected: look often.
  bool wants_fast_samples() const { return !context_seen_ && !is_over_; }
  // The kernel says that nobody holds the process' lock, and the process is gone, has become another or let go of the spool.
  bool has_ended() const;
  // The process may go on, without being recorded.
  void stop_recording() { spool_.header().stop.store(1, std::memory_order_release); }

  // The rest of the trace. `ending`: settings to add, such as process.exit_code.
  TraceInfo finish(const std::map<std::string, std::string>& ending);
  bool has_trace() const { return trace_ != nullptr; }
  // What is known so far.
  TraceInfo info() const;
  // The files of the spool, to be removed when the trace is finished.
  void remove_files();

  // The name of its trace, but for a number and the extension.
  std::string trace_stem() const;
  std::uint64_t start_realtime_us() const { return spool_.header().realtime0_ns / 1000; }

  // Recover, before the first poll(): continue after what another collector stored in `partial`.
  void continue_from(const std::filesystem::path& partial) {
    partial_ = partial;
    open_trace();
  }

 private:
  Session(SpoolFile spool, const CollectOptions& options, const TickClock& clock, const Sampler& sampler);

  void take(std::uint32_t thread, const spool::RecordHead& head, std::span<const std::byte> record);
  bool deliver(const Event& event, bool last_call);
  void open_trace();
  Result<trace::Writer> create_file();
  void write_beginning();
  void flush(bool with_totals);
  void flush_if_due(std::uint64_t now_us);
  void write_failed(const Error& error);
  void write_op_sources(bool last_call);
  void count_losses();
  void write_contexts(bool last_call);
  std::uint64_t pinned_bytes() const;
  bool uses_device(std::size_t device) const;
  std::uint64_t time_us(std::uint64_t ticks) const;
  std::uint64_t since_start_us() const;

  const CollectOptions& options_;
  const TickClock& clock_;
  const Sampler& sampler_;
  SpoolFile spool_;
  proc::Pid pid_;
  std::uint64_t start_ticks_;
  std::string command_;
  Drain drain_;
  Definitions definitions_;
  Merger merger_;
  std::unique_ptr<ProcessTrace> trace_;
  std::filesystem::path partial_;
  std::filesystem::path path_;
  std::vector<Event> early_;  // settings from before there is anything to trace
  std::map<trace::LossKind, std::uint64_t> losses_;
  DeviceIdentity identity_;
  std::vector<std::optional<DeviceLook>> before_;  // per device: before the process was on it
  std::vector<spool::ContextRecord> contexts_;     // noted, and not written yet
  std::vector<trace::DeviceSample> last_device_;
  trace::HostSample last_host_;
  std::uint64_t last_sample_written_us_ = 0;
  std::optional<std::uint64_t> ended_us_;  // since the start, when the process was found dead
  std::uint64_t ooms_told_ = 0;
  std::uint64_t drawn_ = 1;
  std::uint64_t last_flush_us_ = 0;
  std::uint64_t last_totals_us_ = 0;
  std::uint64_t last_reclaim_us_ = 0;
  std::uint64_t unwritten_ = 0;
  bool cannot_write_ = false;
  bool context_seen_ = false;
  bool is_over_ = false;
};

}  // namespace vramscope::collect
