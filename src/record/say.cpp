#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "record/recorder.h"
#include "record/text.h"

namespace vramscope::record {

namespace {

struct stat g_stderr_at_start;

// A program that has closed its standard error may by now have a file of its own under that number.
bool stderr_is_unchanged() {
  struct stat now{};
  return g_stderr_at_start.st_ino != 0 && fstat(STDERR_FILENO, &now) == 0 && now.st_dev == g_stderr_at_start.st_dev &&
         now.st_ino == g_stderr_at_start.st_ino;
}

}  // namespace

void remember_stderr() {
  if (fstat(STDERR_FILENO, &g_stderr_at_start) != 0) g_stderr_at_start.st_ino = 0;
}

void say_once(const char* what, const char* remedy) {
  constexpr std::size_t kSaid = 16;
  static std::atomic<const char*> said[kSaid];
  for (auto& place : said) {
    const char* there = nullptr;
    if (place.compare_exchange_strong(there, what, std::memory_order_relaxed)) break;
    if (there == what) return;
  }
  if (!stderr_is_unchanged()) return;
  Text<512> line;
  line.add("vramscope: ").add(what).add(": ").add(remedy).add("\n");
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.c_str(), line.size());
}

}  // namespace vramscope::record
