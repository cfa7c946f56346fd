#include "cli/run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "collect/sample/proc.h"

namespace vramscope::cli {

namespace {

// All signals are taken and passed on to the command, whatever they mean to it, except those that say that we have failed...
constexpr int kNotTaken[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGXFSZ};
// ... and those of the terminal's job control, of our children and of our own output.
constexpr int kNotPassedOn[] = {SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGPIPE};
constexpr useconds_t kGroupSignalUs = 30'000;

// The disposition of SIGXFSZ that the command gets; set once we ignore the signal ourselves.
std::optional<struct sigaction> g_file_size_action;

sigset_t taken() {
  sigset_t set;
  sigfillset(&set);
  for (int signal : kNotTaken) sigdelset(&set, signal);
  return set;
}

std::vector<char*> pointers(std::vector<std::string>& arguments) {
  std::vector<char*> all;
  all.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) all.push_back(argument.data());
  all.push_back(nullptr);
  return all;
}

// Everything that exec needs, prepared before a fork.
class Execution {
 public:
  Execution(const std::string& file, const std::vector<std::string>& command)
      : file_(file), words_(command), shell_words_{"sh", file} {
    shell_words_.insert(shell_words_.end(), command.begin() + 1, command.end());
    arguments_ = pointers(words_);
    shell_arguments_ = pointers(shell_words_);
  }
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Returns errno, and only on failure. A script without an interpreter line is run by the shell, as usual.
  int operator()(char* const* environment) const {
    execve(file_.c_str(), arguments_.data(), environment);
    if (errno == ENOEXEC) execve("/bin/sh", shell_arguments_.data(), environment);
    return errno;
  }

 private:
  std::string file_;
  std::vector<std::string> words_, shell_words_;
  std::vector<char*> arguments_, shell_arguments_;
};

// What the command inherits from our parent, and what a fork or our own needs change.
class Inherited {
 public:
  // Only the mask and SIGCHLD change: a parent may have ignored that signal, and then no child could be waited for.
  Inherited() {
    const sigset_t ours = taken();
    sigprocmask(SIG_BLOCK, &ours, &mask_);
    struct sigaction by_default{};
    by_default.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &by_default, &child_action_);
    prctl(PR_GET_PDEATHSIG, &death_signal_);
  }
  void restore() const {
    sigaction(SIGCHLD, &child_action_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  // In the child of a fork, which does not inherit it.
  void restore_death_signal() const {
    if (death_signal_ != 0) prctl(PR_SET_PDEATHSIG, death_signal_);
  }

 private:
  sigset_t mask_;
  struct sigaction child_action_{};
  int death_signal_ = 0;
};

// The child of a fork: only calls that are safe there.
[[noreturn]] void exec_child(const Execution& execution, char* const* environment, const Inherited& inherited, int report) {
  inherited.restore();
  inherited.restore_death_signal();
  if (g_file_size_action) sigaction(SIGXFSZ, &*g_file_size_action, nullptr);
  const int reason = execution(environment);
  [[maybe_unused]] const ssize_t written = write(report, &reason, sizeof reason);
  _exit(127);
}

std::unexpected<LaunchError> not_started(const char* what) {
  const int reason = errno;
  const char* remedy = reason == EMFILE   ? "raise the limit on open files (ulimit -n)"
                       : reason == EAGAIN ? "raise the limit on processes (ulimit -u)"
                                          : "free some memory, or close files";
  return std::unexpected(LaunchError{fmt::format("{}: {}; {}", what, strerror(reason), remedy), true});
}

std::vector<std::string> changed_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!changes.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
  }
  for (const auto& [name, value] : changes) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

}  // namespace

std::expected<std::string, CommandError> find_command(const std::string& word) {
  const auto runnable = [](const std::string& file) {
    struct stat info{};
    return stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(file.c_str(), X_OK) == 0;
  };
  const auto not_runnable = [&](const std::string& file) {
    return std::unexpected(CommandError{fmt::format("{}: not executable; check its permissions", file), 126});
  };
  if (word.find('/') != std::string::npos) {
    if (runnable(word)) return word;
    if (access(word.c_str(), F_OK) == 0) return not_runnable(word);
    return std::unexpected(CommandError{fmt::format("{}: no such file", word), 127});
  }
  const char* path = getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  std::string found_but_not_runnable;
  while (!word.empty()) {
    const std::size_t end = rest.find(':');
    const std::string_view folder = rest.substr(0, end);
    std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, word);
    struct stat info{};
    if (runnable(file)) return file;
    if (found_but_not_runnable.empty() && stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode)) found_but_not_runnable = file;
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (!found_but_not_runnable.empty()) return not_runnable(found_but_not_runnable);
  return std::unexpected(CommandError{fmt::format("{}: command not found", word), 127});
}

void survive_file_size_limit() {
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = SIG_IGN;
  if (sigaction(SIGXFSZ, &ignore, &before) == 0) g_file_size_action = before;
}

int become(const std::string& file, const std::vector<std::string>& command) {
  if (g_file_size_action) sigaction(SIGXFSZ, &*g_file_size_action, nullptr);
  return Execution(file, command)(environ);
}

std::expected<Launch, LaunchError> Launch::start(const std::string& file, const std::vector<std::string>& command,
                                                 const std::map<std::string, std::string>& environment) {
  const Execution execution(file, command);
  std::vector<std::string> variables = changed_environment(environment);
  const std::vector<char*> entries = pointers(variables);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return not_started("pipe");
  const Inherited inherited;
  Launch launch;
  launch.child_ = fork();
  if (launch.child_ == 0) exec_child(execution, entries.data(), inherited, report[1]);
  const int fork_error = errno;
  close(report[1]);
  if (launch.child_ < 0) {
    close(report[0]);
    inherited.restore();
    errno = fork_error;
    return not_started("fork");
  }
  int reason = 0;
  const bool failed = read(report[0], &reason, sizeof reason) == sizeof reason;
  close(report[0]);
  if (failed) {
    waitpid(launch.child_, nullptr, 0);
    inherited.restore();
    // An argument list that is too long, or too little memory, may be caused by what we added.
    return std::unexpected(LaunchError{fmt::format("{}: {}", file, strerror(reason)), reason == E2BIG || reason == ENOMEM});
  }
  launch.start_sentinel();
  return launch;
}

// A process of our group that only leaves its signals pending. It distinguishes a signal to the whole group, which the command
// has received itself, from one to us alone, which we must forward.
void Launch::start_sentinel() {
  sentinel_ = fork();
  if (sentinel_ != 0) return;
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "vramscope-wait");
#ifdef SYS_close_range
  syscall(SYS_close_range, 0u, ~0u, 0u);  // an open pipe end would keep readers of the command's output waiting
#else
  for (int fd = 0; fd < 1024; ++fd) close(fd);
#endif
  for (;;) pause();
}

bool Launch::whole_group_got(int signal) {
  usleep(kGroupSignalUs);  // a sender that signals process by process needs a moment
  const std::string status = collect::proc::read_file(fmt::format("/proc/{}/status", sentinel_));
  const std::size_t at = status.find("ShdPnd:\t");
  if (at == std::string::npos) return false;
  std::uint64_t pending = 0;
  const char* digits = status.data() + at + 8;
  std::from_chars(digits, digits + 16, pending, 16);
  if ((pending >> (signal - 1) & 1) == 0) return false;
  kill(sentinel_, SIGKILL);
  waitpid(sentinel_, nullptr, 0);
  start_sentinel();
  return true;
}

bool Launch::wait(std::uint64_t microseconds) {
  const sigset_t ours = taken();
  timespec timeout{static_cast<time_t>(microseconds / 1'000'000), static_cast<long>(microseconds % 1'000'000 * 1000)};
  siginfo_t info;
  if (sigtimedwait(&ours, &info, &timeout) > 0) handle(info);
  if (!ended_) collect_children();  // even without a signal: one SIGCHLD can stand for several
  return ended_;
}

void Launch::handle(const siginfo_t& info) {
  if (std::ranges::find(kNotPassedOn, info.si_signo) != std::end(kNotPassedOn)) return;
  // Our own processor time, not the command's. A process that sends the signal means the command.
  if (info.si_signo == SIGXCPU && info.si_code > 0) return;
  if (whole_group_got(info.si_signo)) return;
  if (info.si_code == SI_QUEUE) {
    sigqueue(child_, info.si_signo, info.si_value);
  } else {
    kill(child_, info.si_signo);
  }
}

void Launch::collect_children() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
    if (pid == sentinel_ && !WIFSTOPPED(status)) start_sentinel();
    if (pid != child_) continue;
    if (WIFSTOPPED(status)) {
      // SIGSTOP to the command alone does not concern us; the terminal's stop signals stop the whole job.
      const int by = WSTOPSIG(status);
      if (by == SIGTSTP || by == SIGTTIN || by == SIGTTOU) stop_with(by);
      continue;
    }
    status_ = status;
    ended_ = true;
  }
}

void Launch::stop_with(int signal) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  const timespec at_once{};
  while (sigtimedwait(&one, nullptr, &at_once) > 0) continue;
  kill(getpid(), signal);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);  // we stop here, until fg or bg
  sigprocmask(SIG_BLOCK, &one, nullptr);
  // The shell continues the whole group. If only we were continued, the command has to be continued too, unless it was stopped
  // again meanwhile, together with us.
  usleep(kGroupSignalUs);
  const std::string stat = collect::proc::read_file(fmt::format("/proc/{}/stat", child_));
  const std::size_t state = stat.rfind(") ");
  sigset_t pending;
  const bool again = sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
  if (state != std::string::npos && stat[state + 2] == 'T' && !again) kill(child_, SIGCONT);
}

void Launch::die_alike() {
  if (sentinel_ > 0) kill(sentinel_, SIGKILL);
  if (WIFSIGNALED(status_)) {
    const int by = WTERMSIG(status_);
    // The command has left its core dump; ours would only overwrite it.
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(by, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, by);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    kill(getpid(), by);
    _exit(128 + by);  // as PID 1, we cannot be killed by it
  }
  _exit(WEXITSTATUS(status_));
}

}  // namespace vramscope::cli
