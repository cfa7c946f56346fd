// Reads a .vram file: whole, still growing, or damaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/result.h"
#include "trace/gen/schema.h"

namespace vramscope::trace {

// What could not be read. An undamaged file has `message` empty.
struct Damage {
  std::uint64_t offset = 0;  // where reading stopped
  std::uint64_t bytes = 0;   // from there to the end of the file
  std::string message;       // one sentence for a person
  bool truncated = false;    // no footer: the recording did not end by itself (killed, still running)
};

// The events of one chunk in order, as columns. `kind[i]` says in which table event i is; the tables hold their events in the
// same order, so that one counter per kind walks them.
struct Chunk {
  std::uint64_t first_event = 0;
  std::uint64_t first_alloc = 0;  // ordinal of the first alloc event in it
  std::vector<EventKind> kind;
  std::vector<std::uint64_t> seq;
  std::vector<std::uint64_t> time_us;  // since the trace's start
  std::vector<ThreadId> thread;
  Tables tables;  // generated: one struct of columns for each event kind
};

// Thread-safe once open. Opening reads headers, dictionaries and the index only.
class Reader {
 public:
  static Result<Reader> open(const std::filesystem::path& path);
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  const Dictionaries& dictionaries() const;
  const Damage& damage() const;
  std::uint64_t start_realtime_us() const;
  std::uint64_t events() const;
  std::uint64_t allocs() const;
  std::size_t chunks() const;
  // A chunk whose checksum does not hold is an error that names its place; the others stay readable.
  Result<Chunk> chunk(std::size_t index) const;
  // The same into a chunk that is used again, which saves the allocation of its columns.
  Status read(std::size_t index, Chunk& into) const;
  const std::filesystem::path& path() const;

 private:
  struct State;
  explicit Reader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vramscope::trace
