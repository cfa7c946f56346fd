// Watches a spool folder: gives every process that appears in it a session, and every session its end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collect/manifest.h"
#include "collect/options.h"
#include "collect/sampler.h"
#include "collect/session.h"
#include "collect/tick_clock.h"

namespace vramscope::collect {

// Whether a collector that lives looks after this spool folder. The kernel answers: a lock that dies with its holder.
bool has_collector(const std::filesystem::path& spool_folder);

class Collector {
 public:
  // Begins to watch. `options` are kept.
  explicit Collector(CollectOptions options);
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  ~Collector();

  // One round, never waiting. How many microseconds may pass until the next one.
  std::uint64_t poll();
  // The direct child: how it ended is known to us alone, and its trace waits for it.
  void child_started(pid_t child) { child_ = child; }
  void child_ended(int wait_status);

  // After the command: waits a little for recorded processes that still run, ends their recording, closes all traces.
  void finish(std::uint64_t grace_us);
  // Traces of processes that are over, in the order of their end.
  const std::vector<TraceInfo>& traces() const { return manifest_.traces; }
  std::size_t running() const { return sessions_.size(); }
  const CollectOptions& options() const { return options_; }

 private:
  bool find_spools();
  void open(const std::filesystem::path& spool);
  void end_session(std::size_t index, bool still_running);
  bool may_end(const Session& session) const;
  void save_manifest();
  bool folder_changed();
  void claim_folder();

  CollectOptions options_;
  TickClock clock_;
  Sampler sampler_;
  Manifest manifest_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::set<std::filesystem::path> known_;
  pid_t child_ = 0;
  std::optional<int> child_status_;
  int watch_ = -1;
  int claim_ = -1;
  std::uint64_t last_scan_us_ = 0;
  std::uint64_t last_calibration_us_ = 0;
  std::uint64_t last_end_check_us_ = 0;
  std::uint64_t idle_rounds_ = 0;
  bool manifest_failed_ = false;
};

}  // namespace vramscope::collect
