// What the collector is asked to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/anonymize.h"
#include "trace/gen/schema.h"

namespace vramscope::collect {

struct NativeSymbol {
  std::string function;  // empty = not known
  std::uint32_t line = 0;
};

using NativeSymbols = std::function<NativeSymbol(const std::string& path, const std::string& build_id, std::uint64_t offset)>;

struct CollectOptions {
  std::filesystem::path output;        // the run folder, exists
  std::filesystem::path spool_folder;  // exists, mode 0700
  std::string host;
  std::vector<std::string> command;
  std::uint64_t spool_limit = std::uint64_t{256} << 20;  // bytes per process
  std::uint64_t trace_limit = 0;                         // 0 = none
  double sample_hz = 10;
  std::optional<trace::AnonymousKey> anonymize = {};
  std::function<void(const std::string&)> say;  // one line, or a few, for the user
  // Name and, where there is debug information, source line of a machine address in a file. Not set: addresses stay numbers.
  NativeSymbols native_symbol;
};

// What became of one process.
struct TraceInfo {
  std::filesystem::path path;
  std::uint32_t pid = 0;
  std::string command;
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;
  std::map<trace::LossKind, std::uint64_t> losses;
  std::string totals_check;  // "equal", or where the events and the recorder's totals differ
  bool complete = false;     // finished with its footer
};

}  // namespace vramscope::collect
