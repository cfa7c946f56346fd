#include "cli/top/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

#include "cli/top/keys.h"

namespace vramscope::cli::top {

namespace {

termios g_before;
volatile std::sig_atomic_t g_taken = 0;
volatile std::sig_atomic_t g_interrupted = 0;

void on_end(int) { g_interrupted = 1; }

void on_crash(int signal) {
  Screen::leave();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

Result<bool> Screen::enter() {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)
    return fail("top needs a terminal; in scripts, use 'vramscope top --once', with or without --json");
  if (tcgetattr(STDIN_FILENO, &g_before) != 0) return fail("cannot read from the terminal; use 'vramscope top --once'");
  termios raw = g_before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  g_taken = 1;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, on_end);
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE}) std::signal(signal, on_crash);
  write("\x1b[?1049h\x1b[?25l\x1b[2J");
  return true;
}

void Screen::leave() {
  if (g_taken == 0) return;
  g_taken = 0;
  write("\x1b[0m\x1b[?25h\x1b[?1049l");
  tcsetattr(STDIN_FILENO, TCSANOW, &g_before);
}

std::pair<int, int> Screen::size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) return {size.ws_col, size.ws_row};
  return {120, 40};
}

Depth Screen::depth() { return terminal_depth(); }

bool Screen::interrupted() { return g_interrupted != 0; }

void Screen::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::vector<std::string> Screen::keys(int milliseconds) {
  pollfd wait{STDIN_FILENO, POLLIN, 0};
  if (::poll(&wait, 1, milliseconds) <= 0) return {};
  char buffer[256];
  const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
  if (got <= 0) return {"q"};  // the terminal is gone
  return keys_in({buffer, static_cast<std::size_t>(got)});
}

}  // namespace vramscope::cli::top
