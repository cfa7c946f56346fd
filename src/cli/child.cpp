#include "cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/run/launch.h"

namespace vramscope::cli {

Result<int> run_and_wait(const std::string& file, const std::vector<std::string>& command, Streams streams) {
  const pid_t child = fork();
  if (child < 0) return fail(fmt::format("{}: cannot be started: {}", file, std::strerror(errno)));
  if (child == 0) {
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
  return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

}  // namespace vramscope::cli
