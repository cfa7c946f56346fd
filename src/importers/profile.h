// What importers fill: events in any order of time, with the names that they refer to. write() makes a trace of it.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tsl/robin_map.h>

#include "importers/distinct.h"
#include "support/result.h"
#include "trace/gen/schema.h"

namespace vramscope::importers {

using Text = std::uint32_t;   // 0 = ""
using Stack = std::uint32_t;  // 0 = none

struct PoolInfo {
  std::string_view name;
  std::int64_t device = 0;  // -1 = host
  trace::Memory memory = trace::Memory::device;
  trace::Framework framework = trace::Framework::none;
};

// What an allocation may have besides its place, size and time.
struct Details {
  Text op = 0, region = 0, shape = 0, owner = 0;
  std::uint64_t dtype = 0;
  Stack stack = 0;
  std::uint64_t stream = 0;
  bool operator==(const Details&) const = default;
};

struct FrameInfo {
  Text function = 0, file = 0;
  std::uint64_t line = 0;
  bool operator==(const FrameInfo&) const = default;
  std::size_t hash() const { return secret_hash_of({function, file, line}); }
};

class Profile {
 public:
  Profile();

  Text text(std::string_view value);
  // Of a part of the file, found by its place: a few bytes can refer to a long name, very many times. The file must stay where it
  // is.
  Text text_in_file(std::string_view part);
  std::uint32_t pool(const PoolInfo& info);
  std::uint32_t frame(const FrameInfo& frame);
  Stack stack(std::span<const std::uint32_t> frames);  // innermost first

  // Times are microseconds of one clock; equal times keep the order of the calls.
  void alloc(std::uint64_t time_us, std::uint32_t pool, std::uint64_t address, std::uint64_t requested, std::uint64_t granted,
             const Details& details);
  // A block that was live before the first event.
  void was_live(std::uint32_t pool, std::uint64_t address, std::uint64_t requested, std::uint64_t granted,
                const Details& details);
  void free(std::uint64_t time_us, std::uint32_t pool, std::uint64_t address);
  void region(std::uint64_t time_us, std::uint32_t pool, std::uint64_t address, std::uint64_t bytes, bool returned);
  void had_region(std::uint32_t pool, std::uint64_t address, std::uint64_t bytes);
  // 0: not known.
  void oom(std::uint64_t time_us, std::uint32_t pool, std::uint64_t requested, std::uint64_t live, std::uint64_t limit,
           const Details& details);
  void step(std::uint64_t time_us, std::int64_t number, bool begins);
  // The framework's own counters, valid at the end.
  void counters(const trace::Stats& stats, std::uint32_t pool);

  void setting(std::string_view key, std::string_view value) { settings_.emplace_back(key, value); }
  // What a recording would have and this source does not: "steps". Shown with every answer.
  void lacks(std::string_view what) { lacks_.emplace_back(what); }
  void lacks_times() { lacks("when blocks were allocated and freed: it shows one instant"); }
  void lacks_beginning() { lacks("what was allocated before the profile began"); }
  void lost(std::uint64_t events) { lost_ += events; }
  // When time 0 of the events was, in microseconds since 1970.
  void starts(std::uint64_t realtime_us) { start_us_ = realtime_us; }

  std::uint64_t events() const { return before_.size() + events_.size(); }
  // Creates the trace. `format` is stored in it.
  Status write(const std::filesystem::path& trace, std::string_view format, std::string_view title);

 private:
  enum class Kind : std::uint8_t { alloc, free, region, returned, oom, begin, end };
  struct Event {
    std::uint64_t time_us, address, bytes;
    std::uint32_t site;  // of an allocation or failure; otherwise the pool
    Kind kind;
  };
  struct SiteInfo {
    std::uint32_t pool;
    std::uint64_t requested;
    Details details;
    bool operator==(const SiteInfo&) const = default;
    std::size_t hash() const {
      const Details& d = details;
      return secret_hash_of({pool, requested, d.op, d.region, d.shape, d.owner, d.dtype, d.stack, d.stream});
    }
  };
  struct Failure {
    std::uint64_t live, limit;
  };
  class Writing;

  std::uint32_t site(std::uint32_t pool, std::uint64_t requested, const Details& details);

  std::vector<std::string> texts_;
  tsl::robin_map<std::string, Text> text_ids_;
  tsl::robin_map<std::string, Text> places_;  // by address and length
  struct PoolRow {
    Text name;
    std::int64_t device;
    trace::Memory memory;
    trace::Framework framework;
  };
  std::vector<PoolRow> pools_;
  std::map<std::pair<Text, std::int64_t>, std::uint32_t> pool_ids_;  // by name and device
  Distinct<FrameInfo> frames_;
  tsl::robin_map<std::string, std::uint32_t> stack_ids_;         // by their bytes
  std::vector<std::pair<std::uint32_t, std::uint32_t>> stacks_;  // begin and count in stack_frames_
  std::vector<std::uint32_t> stack_frames_;
  Distinct<SiteInfo> sites_;
  std::deque<Event> before_, events_;  // what is in them does not move while they grow
  std::vector<Failure> failures_;
  std::vector<std::pair<trace::Stats, std::uint32_t>> counters_;
  std::vector<std::pair<std::string, std::string>> settings_;
  std::vector<std::string> lacks_;
  std::uint64_t lost_ = 0, start_us_ = 0;
};

}  // namespace vramscope::importers
