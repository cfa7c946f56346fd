#include "cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/run/launch.h"

namespace vramscope::cli {

namespace {

// Ignored while it lives, as by system(3).
class TerminalSignals {
 public:
  TerminalSignals() {
    for (std::size_t i = 0; i < std::size(kAll); ++i) before_[i] = ::signal(kAll[i], SIG_IGN);
  }
  TerminalSignals(const TerminalSignals&) = delete;
  TerminalSignals& operator=(const TerminalSignals&) = delete;
  ~TerminalSignals() { restore(); }
  void restore() const {
    for (std::size_t i = 0; i < std::size(kAll); ++i) ::signal(kAll[i], before_[i]);
  }

 private:
  static constexpr int kAll[] = {SIGINT, SIGQUIT};
  void (*before_[std::size(kAll)])(int) = {};
};

}  // namespace

Result<int> run_and_wait(const std::string& file, const std::vector<std::string>& command, Streams streams) {
  const pid_t parent = getpid();
  const TerminalSignals signals;
  const pid_t child = fork();
  if (child < 0) return fail(fmt::format("{}: cannot be started: {}", file, std::strerror(errno)));
  if (child == 0) {
    signals.restore();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    if (streams == Streams::none) {
      const int nothing = ::open("/dev/null", O_RDWR);
      for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (nothing >= 0) dup2(nothing, stream);
    }
    become(file, command);
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kEndedBySignal + WTERMSIG(status);
}

}  // namespace vramscope::cli
