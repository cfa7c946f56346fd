// What was recorded, in a handful of figures: one pass over a trace, no index.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/result.h"
#include "trace/reader.h"

namespace vramscope::analyze {

struct PoolSummary {
  std::string name;
  std::int64_t device = -1;  // -1 = host
  trace::Level level{};
  trace::Memory memory{};
  trace::Framework framework{};
  std::uint64_t allocs = 0;
  std::uint64_t frees = 0;
  std::uint64_t peak_bytes = 0;            // granted
  std::uint64_t peak_requested_bytes = 0;  // highest sum of what was asked for
  std::uint64_t end_bytes = 0;
  std::uint64_t largest_alloc_bytes = 0;
  std::uint64_t region_bytes_peak = 0;
  std::uint64_t region_bytes_end = 0;
  std::uint64_t ooms = 0;          // failures
  std::uint64_t refusals = 0;      // optional requests that were turned down and did no harm
  std::uint64_t before_bytes = 0;  // live when recording began (late attach)
  bool order_exact = true;         // false: the peak is "at least"
};

struct OwnerSummary {
  std::uint64_t allocs = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
};

// Device memory that was taken from the driver directly, by pools and by everybody else.
struct DriverSummary {
  std::uint64_t allocs = 0;
  std::uint64_t frees = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
  std::map<std::string, OwnerSummary> by_owner;
};

struct DeviceSummary {
  std::int64_t device = 0;
  std::uint64_t samples = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t peak_used_bytes = 0;
  std::optional<std::uint64_t> peak_process_bytes;  // nullopt: NVML could not tell which process is ours
  std::optional<std::uint64_t> context_bytes;
};

struct HostSummary {
  std::uint64_t samples = 0;
  std::uint64_t peak_rss_bytes = 0;
  std::uint64_t peak_pinned_bytes = 0;
};

struct Summary {
  std::string file;
  std::uint64_t pid = 0;
  std::string command;
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::uint64_t duration_us = 0;
  std::uint64_t events = 0;
  std::map<trace::LossKind, std::uint64_t> lost;
  std::uint64_t lost_events = 0;     // sum of what is missing
  std::uint64_t thinned_allocs = 0;  // kept as totals only (--trace-limit), with their frees
  std::uint64_t cut_stacks = 0;      // whose outer frames were left out
  std::vector<PoolSummary> pools;    // tensor level, highest peak first
  std::vector<PoolSummary> driver_pools;
  DriverSummary driver;
  std::vector<DeviceSummary> devices;
  HostSummary host;
  std::map<std::string, std::string> settings;
  std::string damage;  // one sentence about what could not be read; empty = all is well
  bool ended = true;   // false: no footer (killed, or still running)
};

Result<Summary> summarize(const std::string& path);

// Device pools before host pools, then by size.
const PoolSummary* main_pool(const Summary& summary);

}  // namespace vramscope::analyze
