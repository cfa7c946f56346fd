// Writes traces of programs that never ran, with the truth known.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bfc.h"
#include "support/result.h"
#include "trace/writer.h"

namespace vramscope::tracegen {

// One allocation to be made.
struct Want {
  std::string op, region = "output";
  std::uint64_t bytes = 0;
  int device = 0;
  std::uint64_t dtype = 1;
  std::string shape = {};
  std::string file = {};  // with line: a stack of one frame
  std::uint64_t line = 0;
};

struct Handle {
  std::uint64_t address = 0;
  int device = 0;
  std::uint64_t granted = 0;
};

class Maker {
 public:
  struct Options {
    int devices = 1;
    trace::Memory memory = trace::Memory::device;
    trace::Framework framework = trace::Framework::tensorflow;
    Bfc::Options pool = {};
    std::uint64_t us_per_event = 3;
    std::uint64_t start_realtime_us = 0;  // 0: now
    bool of_objects = false;              // addresses are those of objects, not of memory
    bool shows_pool = true;               // its regions are recorded, and a failed request says what the pool holds and may take
  };
  static Result<Maker> create(const std::filesystem::path& path, const Options& options);
  Maker(Maker&&) = default;

  std::optional<Handle> alloc(const Want& want);  // nullopt: an oom event was written
  void free(const Handle& handle);
  void mark(trace::MarkKind kind, trace::MarkEdge edge, const std::string& name, std::int64_t number = -1,
            const std::string& detail = {});
  void tag(const Handle& handle, trace::Category category, const std::string& name, const std::string& layer);
  void setting(const std::string& key, const std::string& value);
  void report(const trace::Report& report) { writer_.append(now(), report); }
  trace::StringId string(std::string_view text) { return writer_.string(text); }
  void op_source(const std::string& op, const std::string& file, std::uint64_t line, const std::string& layer);
  void source(const std::string& file, trace::SourceState state, const std::map<std::uint64_t, std::string>& lines);
  void device_sample(int device, std::uint64_t used, std::uint64_t total, std::uint64_t process);
  void wait(std::uint64_t us) { time_us_ += us; }
  Status finish();                              // with the pools' own totals, as the recorder keeps them
  Status abandon() { return writer_.flush(); }  // as if the process had been killed

  Bfc& pool(int device = 0) { return pools_[static_cast<std::size_t>(device)].bfc; }
  std::uint64_t peak(int device = 0) const { return pools_[static_cast<std::size_t>(device)].peak; }
  std::uint64_t allocs(int device = 0) const { return pools_[static_cast<std::size_t>(device)].allocs; }
  std::uint64_t events() const { return writer_.events(); }

 private:
  struct Pool {
    Bfc bfc;
    trace::PoolId id;
    std::uint64_t peak = 0, allocs = 0, frees = 0, largest = 0, ooms = 0;
  };
  explicit Maker(trace::Writer writer) : writer_(std::move(writer)) {}
  trace::At now() { return {++seq_, time_us_ += us_per_event_, thread_}; }
  trace::SiteId site(const Want& want);
  trace::Writer writer_;
  std::vector<Pool> pools_;
  trace::ThreadId thread_{};
  std::uint64_t seq_ = 0, time_us_ = 0, us_per_event_ = 3;
  bool shows_pool_ = true, of_objects_ = false;
};

}  // namespace vramscope::tracegen
