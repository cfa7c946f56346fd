// Everything that has to be in place before a command can be recorded.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/options.h"
#include "support/owned_folder.h"
#include "support/result.h"

namespace vramscope::cli {

struct RecordingOptions {
  std::string output;  // empty: vramscope-runs/<time>-<name>
  std::string stacks = "python";
  std::string unwind = "frames";
  std::uint64_t spool_limit = 0;  // 0: as much as the place allows, up to spool::kDefaultLimit per process
  std::uint64_t trace_limit = 0;
  std::string host = "process";  // "python": lines of Python that hold host memory, too
  double sample_hz = 10;
  std::string source_root;  // Python files in it are the user's; empty: as far as they can be recognized
  bool small = false;       // use as little memory as possible; bursts may lose detail
  bool python = true;
  bool anonymize = false;
  bool xla = false;    // XLA writes its plans to a separate folder in the output
  bool source = true;  // store the text around allocating lines in the trace
};

struct Recording {
  collect::CollectOptions collect;
  support::OwnedFolder spool;
  std::optional<support::OwnedFolder> xla_plans;
  std::map<std::string, std::string> environment;  // for the command
  std::filesystem::path spool_link;                // in the output folder: tells `recover` where the spool is
  std::filesystem::path latest;                    // the link to this run, if it was made
  std::filesystem::path latest_before;             // its previous target, for a run that leaves no trace
};

// The error says what is not recorded and what to do. The command can still run.
Result<Recording> prepare(const RecordingOptions& options, const std::vector<std::string>& command);

// Removes the spool folder, the link to it, and everything that XLA dumped except the plans. If there is no trace, "latest" gets
// its previous target.
void clean_up(const Recording& recording);

// The start of the name of the folder with XLA's plans (analyze::kXlaPlans).
inline constexpr const char* kXlaPrefix = "xla-";

std::string host_name();
// The last part of a path, with only characters that are valid in any file name.
std::string safe_name(const std::string& word);
// libvramscope_inject.so: next to the program, or in ../lib. Empty if it is missing.
std::filesystem::path find_inject_library();
// The folder with the Python startup hook. Empty if it is missing.
std::filesystem::path find_python_startup();

}  // namespace vramscope::cli
