// What is on the GPUs right now: what the devices report, and what only a recorded process can report.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collect/sample/nvml.h"

namespace vramscope::cli::top {

using Bytes = std::uint64_t;
inline constexpr std::uint64_t kHistoryUs = 60'000'000;  // how far back curves go

struct Category {
  std::string name;
  Bytes bytes = 0;
};

struct Process {
  std::uint32_t pid = 0;
  std::string command;
  std::string framework;  // "" = not recorded
  int gpu = -1;
  std::optional<Bytes> device;  // reported by NVML
  bool recorded = false;
  Bytes pool = 0, live = 0, peak = 0, limit = 0;  // of its device pools; of its host pools if it has no others
  std::uint64_t ooms = 0;
  // From the trace that is being written; absent until it has steps.
  std::optional<Bytes> steady_peak;
  std::optional<double> growth;  // bytes per step
  std::int64_t step = 0;         // 0 = none yet
  std::string phase;
  std::string sentence;  // what the user should know about it
  bool grows = false;
  std::vector<Category> at_peak;
  std::vector<Category> largest;
  std::string trace;                                     // the file that is being written; "" = not there yet
  std::vector<std::pair<std::uint64_t, Bytes>> history;  // microseconds, live; oldest first
};

struct Gpu {
  int index = 0;
  std::string name;
  Bytes used = 0, total = 0;
  Bytes live = 0, pool = 0;  // of recorded processes
  Bytes recorded = 0;        // device bytes of recorded processes
};

struct State {
  std::uint64_t time_us = 0;
  std::string problem;  // why there are no devices
  std::vector<Gpu> gpus;
  std::vector<Process> processes;
};

// Reads totals from the spool headers: no lock, no signal, nothing that the process would notice.
class Gatherer {
 public:
  Gatherer();
  ~Gatherer();
  State gather(std::uint64_t now_us);
  // Answers from the traces come from other threads: returns when the next gather() has them.
  void wait_for_traces() const;

 private:
  struct Known;
  void read_spools(State& state, std::uint64_t now_us);
  void read_devices(State& state);

  std::unique_ptr<collect::Nvml> nvml_;
  std::map<std::string, std::unique_ptr<Known>> known_;  // by path of the spool file
};

}  // namespace vramscope::cli::top
