// The contents of a spool folder, by name: everything that may ever be deleted in one.
#pragma once

#include <string_view>

namespace vramscope::collect {

inline constexpr const char* kClaimName = "collector.lock";  // locked while a collector is alive
inline constexpr const char* kOptionsName = "options";       // for a recovery
inline constexpr const char* kRunLink = "run";               // points to the run folder
// Extensions of files next to a spool.
inline constexpr const char* kTraceNote = ".trace";      // the name of the process's trace
inline constexpr const char* kFreshNote = ".recovered";  // the name of the file that a recovery writes

// A file that the recorder or the collector creates in a spool folder: <pid>-<n>.spool and related files, and the names above.
bool is_spool_file(std::string_view name);

}  // namespace vramscope::collect
