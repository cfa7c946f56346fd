// Options and results of the collector.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spool/layout.h"
#include "trace/anonymize.h"
#include "trace/gen/schema.h"

namespace vramscope::collect {

struct NativeSymbol {
  std::string function;  // empty = unknown
  std::uint32_t line = 0;
};

using NativeSymbols = std::function<NativeSymbol(const std::string& path, const std::string& build_id, std::uint64_t offset)>;

struct CollectOptions {
  std::filesystem::path output;        // the run folder; it exists
  std::filesystem::path spool_folder;  // exists, mode 0700
  std::string host;
  std::vector<std::string> command;
  std::uint64_t spool_limit = spool::kDefaultLimit;  // bytes per process
  std::uint64_t trace_limit = 0;                     // 0 = none
  std::size_t merge_events = std::size_t{1} << 20;   // most events held back to put them in order; a power of two
  double sample_hz = 10;
  std::optional<trace::AnonymousKey> anonymize = {};
  std::map<std::string, std::string> settings;  // additional settings to write at the start of each trace
  bool recovering = false;                      // the collector died: spools are only read, traces replaced when they are whole
  bool keep_sources = false;                    // stores the source text around allocating lines in the trace
  std::function<void(const std::string&)> say;  // prints one or more lines for the user
  // Returns the name and, if there is debug information, the source line of a machine address in a file. Not set: addresses
  // stay numbers.
  NativeSymbols native_symbol;
};

// The outcome for one process.
struct TraceInfo {
  std::filesystem::path path;
  std::uint32_t pid = 0;
  std::string command;
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;
  std::map<trace::LossKind, std::uint64_t> losses;
  std::string totals_check;  // "equal", or where the events and the recorder's totals differ
  bool complete = false;     // complete, with a footer
};

}  // namespace vramscope::collect
