// Everything that has to be in place before a command can be recorded.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "collect/options.h"
#include "support/result.h"

namespace vramscope::cli {

// Where it is set, TensorFlow keeps a pool on the host, of the same kind as on a GPU.
inline constexpr const char* kHostPoolVariable = "TF_CPU_ALLOCATOR_USE_BFC";

struct RecordingOptions {
  std::string output;  // empty: vramscope-runs/<time>-<name>
  std::string stacks = "python";
  std::string unwind = "frames";
  std::uint64_t spool_limit = 0;  // 0: as much as the place allows, up to 256 MiB a process
  std::uint64_t trace_limit = 0;
  double sample_hz = 10;
  bool python = true;
  bool anonymize = false;
  bool xla = false;  // XLA writes its plans into the folder xla/ of the output
};

struct Recording {
  collect::CollectOptions collect;
  std::map<std::string, std::string> environment;  // for the command
  std::filesystem::path spool_link;                // in the output folder: tells `recover` where the spool is
  std::filesystem::path latest_before;             // where "latest" led, for a run that leaves no trace
};

// The error says what is not recorded and what to do; the command can run all the same.
Result<Recording> prepare(const RecordingOptions& options, const std::vector<std::string>& command);

// Removes the spool folder and the link to it. "latest" goes back where it was if there is no trace.
void clean_up(const Recording& recording);

// In the output folder: what XLA wrote about its executables, of which only the plans are kept.
inline constexpr const char* kXlaFolder = "xla";
void keep_xla_plans(const std::filesystem::path& output);

// In the spool folder: a link to the run's folder.
inline constexpr const char* kRunLink = "run";
// What `prepare` noted in the spool folder for a recovery: host, limits, anonymity. Defaults where there is nothing.
collect::CollectOptions stored_options(const std::filesystem::path& spool_folder);

std::string host_name();
// libvramscope_inject.so: beside the program, or in ../lib. Empty if it is not there.
std::filesystem::path find_inject_library();
// The folder with Python's start-up hook. Empty if it is not there.
std::filesystem::path find_python_startup();

}  // namespace vramscope::cli
