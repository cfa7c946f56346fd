// A program run under the injected library, and what is in its spool afterwards. No collector: the records as capture made them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "spool/layout.h"

namespace fakegpu_test {

namespace spool = vramscope::spool;

struct Event {
  spool::RecordHead head{};
  std::uint32_t thread = 0;
  std::uint64_t address = 0;  // context: the device
  std::uint64_t bytes = 0;    // alloc: granted; region: size; context: free bytes
  std::uint64_t requested = 0;
  std::uint64_t stream = 0;
  std::uint64_t handle = 0;
  std::string owner;
};

struct PoolTotals {
  std::string name;
  std::int32_t device = 0;
  spool::Memory memory{};
  std::uint64_t allocs = 0, frees = 0, live = 0, peak = 0, region = 0, region_peak = 0, ooms = 0;
};

struct Recording {
  int exit_code = -1;         // -signal where it was killed
  std::string output;         // stdout
  std::size_t spools = 0;     // files that were left
  std::vector<Event> events;  // in order; definitions left out
  std::vector<PoolTotals> pools;
  std::uint64_t lost = 0;
  std::vector<Recording> children;  // what forked processes recorded

  const PoolTotals* pool(const std::string& name) const;
  std::vector<Event> of_kind(spool::RecordKind kind) const;
  // Replays all events. Empty if no address was alive twice or freed unborn, and the totals come out the same; else what is
  // wrong.
  std::string contradiction() const;
};

using Environment = std::map<std::string, std::string>;

// Runs build/tests/fakegpu/<program>. `injected` false: without the library; LATE_SPOOL is then where it may
// record to.
Recording record(const std::string& program, const std::vector<std::string>& arguments, const Environment& environment = {},
                 bool injected = true);

}  // namespace fakegpu_test
