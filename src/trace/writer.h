// Writes a .vram file. The format is specified in docs/format/; the model is schema/trace/schema.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "support/result.h"
#include "trace/anonymize.h"
#include "trace/gen/schema.h"

namespace vramscope::support {
class Sink;
}

namespace vramscope::trace {

struct WriterOptions {
  std::uint64_t start_realtime_us = 0;  // event times count from this instant; 0 = now
  std::uint64_t limit_bytes = 0;        // --trace-limit: 0 = none; above it old chunks are thinned (docs/format)
  int zstd_level = 1;
  std::optional<AnonymousKey> anonymize = {};  // strings of names and paths are replaced by a hash with this key
};

// One writer per trace file, used by one thread. Events are appended in their final order. Dictionary entries are interned:
// equal content gets the same id. A crash after flush() has returned loses nothing.
class Writer {
 public:
  // Never opens an existing file: `path` is created exclusively.
  static Result<Writer> create(const std::filesystem::path& path, const WriterOptions& options);
  // Writes to a sink that is still empty; for tests.
  static Result<Writer> create(std::unique_ptr<support::Sink> sink, const WriterOptions& options);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();

  StringId string(std::string_view text);
  PoolId pool(const Pool& pool);
  SiteId site(const Site& site);
  FrameId frame(const Frame& frame);
  // `cut`: frames that were left out at the outer end.
  StackId stack(std::uint64_t hash, std::span<const FrameId> frames, std::uint64_t cut = 0);
  ThreadId thread(const Thread& thread);
  void op_source(const OpSource& source);
  // Text of source files. Left out of an anonymous trace.
  void source_file(const SourceFile& file);
  void source_line(const SourceLine& line);

  // `at` gives the event's order and time. Sequence numbers need not be dense; collector events repeat the last one.
  // `step` is the framework's id of a function run; it is replaced by a number (see the schema).
  std::uint64_t alloc(const At& at, const Alloc& event);  // returns the allocation's ordinal
  // Finds the allocation by (pool, address); a free without one is kept as unmatched.
  std::uint64_t free(const At& at, PoolId pool, std::uint64_t address, std::uint64_t stream);  // ordinal, or kNone
  void append(const At& at, const Region& event);
  void append(const At& at, const Mark& event);
  void append(const At& at, const Tag& event);
  void append(const At& at, const Stats& event);
  void append(const At& at, const Oom& event);
  void append(const At& at, const DeviceSample& event);
  void append(const At& at, const HostSample& event);
  void append(const At& at, const Setting& event);
  void append(const At& at, const Lost& event);
  void append(const At& at, const Context& event);
  void append(const At& at, const Totals& event);
  void append(const At& at, const Report& event);

  // Writes everything so far as whole blocks. Called every second by the collector. After an error (a full disk) the events since
  // the last success are dropped and counted; the next success writes a `lost` event with their number.
  Status flush();
  // Writes the footer. The file is complete afterwards; a writer that is only destroyed leaves a readable file without one.
  // A few events that are appended after a flush() fit even if the disk is full.
  Status finish();

  std::uint64_t events() const;
  std::uint64_t bytes() const;
  std::uint64_t dropped() const;  // events that could not be written

 private:
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vramscope::trace
