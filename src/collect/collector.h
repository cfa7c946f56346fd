// Watches a spool folder: opens a session for every process that appears in it, and closes it when the process ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collect/options.h"
#include "collect/sample/sampler.h"
#include "collect/sample/tick_clock.h"
#include "collect/session.h"
#include "collect/write/manifest.h"

namespace vramscope::collect {

class Collector {
 public:
  // Starts watching. `options` are copied.
  explicit Collector(CollectOptions options);
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  ~Collector();

  // Runs one round without waiting. Returns the microseconds until the next round is due.
  std::uint64_t poll();
  // The direct child: only the collector learns how it ended, and its trace waits for that.
  void child_started(pid_t child) { child_ = child; }
  void child_ended(int wait_status);

  // After the command: waits briefly for recorded processes that are still running, ends their recording, and closes all
  // traces.
  void finish(std::uint64_t grace_us);
  // Traces of processes that have ended, in the order in which they ended.
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
