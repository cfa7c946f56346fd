#include "cli/top/child_view.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <thread>

namespace vramscope::cli::top {

namespace {

constexpr std::size_t kMostText = 1 << 20;  // a table is a few kilobytes

}  // namespace

ChildView::~ChildView() {
  end(verb_);
  end(server_);
}

void ChildView::ask(const std::string& verb, const std::string& trace) {
  end(verb_);
  verb_ = start({"vramscope", verb, trace});
}

void ChildView::serve(const std::string& trace) {
  end(server_);
  server_ = start({"vramscope", "serve", trace});
}

std::vector<std::string> ChildView::lines() const {
  std::vector<std::string> out;
  const std::string text = text_of(verb_);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string ChildView::address() const {
  const std::string text = text_of(server_);
  return text.find('\n') == std::string::npos ? std::string() : text.substr(0, text.find('\n'));
}

ChildView::Child ChildView::start(std::vector<std::string> command) {
  Child child;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return child;
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  child.pid = fork();
  if (child.pid == 0) {  // only what is safe between fork and exec
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    setpgid(0, 0);  // a Ctrl-C in this terminal is meant for top
    const int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execv("/proc/self/exe", arguments.data());
    _exit(127);
  }
  close(ends[1]);
  if (child.pid < 0) {
    close(ends[0]);
    return child;
  }
  child.output = std::make_shared<Output>();
  const auto listen = [output = child.output, from = ends[0]] {
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(from, buffer, sizeof buffer)) > 0;) {
      const std::lock_guard lock(output->mutex);
      if (output->text.size() < kMostText) output->text.append(buffer, static_cast<std::size_t>(got));
    }
    close(from);
  };
  try {
    std::thread(listen).detach();
  } catch (const std::system_error&) {  // cannot start a thread
    close(ends[0]);
    child.output->text = "vramscope: cannot start a thread; raise the limit on processes (ulimit -u)\n";
  }
  return child;
}

void ChildView::end(Child& child) {
  if (child.pid > 0) {
    kill(child.pid, SIGTERM);
    waitpid(child.pid, nullptr, 0);
  }
  child = {};
}

std::string ChildView::text_of(const Child& child) {
  if (child.output == nullptr) return {};
  const std::lock_guard lock(child.output->mutex);
  return child.output->text;
}

}  // namespace vramscope::cli::top
