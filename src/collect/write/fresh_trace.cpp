#include "collect/write/fresh_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <utility>

#include "collect/write/own_note.h"
#include "support/fresh_file.h"
#include "support/owned_folder.h"

namespace vramscope::collect {

namespace {

constexpr const char* kEnding = ".recovered";
constexpr int kMostNames = 1000;

// With what the writer creates next to it.
void remove_fresh(const std::filesystem::path& path) {
  for (const char* addition : {"", ".compact", ".thinned"}) {
    const std::string name = path.string() + addition;
    const int file = support::open_own_file(name, O_RDONLY);
    if (file < 0) continue;
    close(file);
    unlink(name.c_str());
  }
}

Status sync(const std::filesystem::path& path) {
  const int file = support::open_own_file(path, O_RDONLY);
  const bool synced = file >= 0 && fsync(file) == 0;
  const int reason = errno;
  if (file >= 0) close(file);
  if (!synced) return fail(fmt::format("{}: cannot flush to disk: {}", path.string(), strerror(reason)));
  return {};
}

}  // namespace

std::filesystem::path trace_name(const std::string& stem, int n) {
  return n == 1 ? stem + ".vram" : fmt::format("{}-{}.vram", stem, n);
}

FreshTrace::FreshTrace(std::filesystem::path output, std::string stem, std::filesystem::path note)
    : output_(std::move(output)), stem_(std::move(stem)) {
  const std::string before = read_own_note(note);
  if (before.starts_with(stem_) && before.ends_with(kEnding) && before.find('/') == std::string::npos)
    remove_fresh(output_ / before);
  path_ = output_ / fmt::format("{}.{}{}", stem_, support::random_name(), kEnding);
  write_own_note(note, path_.filename().string());
}

FreshTrace::~FreshTrace() {
  if (!kept_) remove_fresh(path_);
}

Result<std::filesystem::path> FreshTrace::keep(const std::filesystem::path& place) {
  if (Status status = sync(path_); !status) return std::unexpected(status.error());
  std::filesystem::path name = place;
  if (!place.empty()) {
    kept_ = rename(path_.c_str(), place.c_str()) == 0;
  } else {
    for (int n = 1; !kept_ && n <= kMostNames; ++n) {
      name = output_ / trace_name(stem_, n);
      kept_ = support::rename_to_new(path_, name);
      if (!kept_ && errno != EEXIST) break;
    }
  }
  if (!kept_)
    return fail(fmt::format("{}: cannot rename {} to it: {}", name.string(), path_.filename().string(), strerror(errno)));
  return name;
}

}  // namespace vramscope::collect
