// Runs a command transparently: its output, exit code, signals and job control are its own.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/result.h"

namespace vramscope::cli {

// The file that a shell would run for this word. The error's message is one line; `code` is 127 (not found) or 126 (not
// executable).
struct CommandError {
  std::string message;
  int code;
};
std::expected<std::string, CommandError> find_command(const std::string& word);

// Replaces this process. Returns errno, and only on failure.
int become(const std::string& file, const std::vector<std::string>& command);

// Makes a limit on file sizes (ulimit -f) an error to report, like a full disk. The command finds the signal as it was.
void survive_file_size_limit();

// Why the command does not run under us.
struct LaunchError {
  std::string message;
  bool may_run_alone;  // it was not the command's fault: without us it can run
};

class Launch {
 public:
  // Starts the command with these changes to the environment. From now on, wait() handles signals to this process.
  static std::expected<Launch, LaunchError> start(const std::string& file, const std::vector<std::string>& command,
                                                  const std::map<std::string, std::string>& environment);

  pid_t child() const { return child_; }
  // Handles signals and children for at most `microseconds`. True if the command has ended.
  bool wait(std::uint64_t microseconds);
  int status() const { return status_; }
  // Ends this process as the command ended: with the same exit code, or by the same signal.
  [[noreturn]] void die_alike();

 private:
  Launch() = default;
  void handle(const siginfo_t& signal);
  void collect_children();
  void stop_with(int signal);
  void start_sentinel();
  bool whole_group_got(int signal);

  pid_t child_ = 0;
  pid_t sentinel_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace vramscope::cli
