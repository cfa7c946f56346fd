// The trace that a collector had written before it died, as a recovery finds it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trace/reader.h"

namespace vramscope::collect {

struct StoredTrace {
  std::filesystem::path path;
  trace::Reader reader;

  bool is_complete() const { return !reader.damage().truncated; }
  // The highest number of its events.
  std::uint64_t last_seq() const;
};

// Remembers the name of a process's trace in the spool folder. Without the note, a recovery searches the run folder.
void note_trace(const std::filesystem::path& note, const std::filesystem::path& trace);

struct StoredSearch {
  std::filesystem::path output;
  std::filesystem::path note;
  std::string stem;  // of the trace's name
  std::uint64_t start_realtime_us = 0;
};

// Only files of our own user count: anyone may be able to write to the run folder. Where several match, one without an end is
// preferred, then the one with the most events.
std::optional<StoredTrace> find_stored(const StoredSearch& search);
// The file that the collector had only just created when it died: the one that the note names, if it is our own and empty.
// Otherwise an empty path.
std::filesystem::path find_empty(const StoredSearch& search);

}  // namespace vramscope::collect
