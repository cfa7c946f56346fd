// Reads a .vram file: complete, still growing, or damaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/compress.h"
#include "support/result.h"
#include "trace/gen/schema.h"

namespace vramscope::trace {

// What could not be read. An undamaged file has `message` empty.
struct Damage {
  std::uint64_t offset = 0;  // where reading stopped
  std::uint64_t bytes = 0;   // from there to the end of the file
  std::string message;       // one sentence for a person
  bool truncated = false;    // no footer: the recording was killed or is still running
};

// The events of one chunk in order, as columns. `kind[i]` gives the table of event i. The tables have their events in the
// same order, so one counter per kind is enough to walk them.
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
  static Result<Reader> open(const std::filesystem::path& path) { return open(path, nullptr); }
  // With a key, the content is identified, too.
  static Result<Reader> open(const std::filesystem::path& path, const support::ChecksumKey& key) { return open(path, &key); }
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  const Dictionaries& dictionaries() const;
  const Damage& damage() const;
  std::uint64_t start_realtime_us() const;
  std::uint64_t events() const;
  std::uint64_t allocs() const;
  std::size_t chunks() const;
  // A chunk whose checksum does not match is an error that names its position; the others stay readable.
  Result<Chunk> chunk(std::size_t index) const;
  // The same into a chunk that is reused, which saves the allocation of its columns.
  Status read(std::size_t index, Chunk& into) const;
  const std::filesystem::path& path() const;
  // Identifies what this reader returns: the same for files with the same content of which the same blocks can be read. Only
  // with a key: the author of a file knows how to make two of them with the same checksums.
  const std::optional<support::WideChecksum>& content() const;
  // How many bytes of memory a file of this size may use.
  std::uint64_t memory_limit() const;
  // How many events a recording of this size can hold: events() may claim more.
  std::uint64_t most_events() const;

 private:
  struct State;
  static Result<Reader> open(const std::filesystem::path& path, const support::ChecksumKey* key);
  explicit Reader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vramscope::trace
