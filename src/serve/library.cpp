#include "serve/library.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "analyze/run_name.h"
#include "serve/open_traces.h"
#include "support/owned_fd.h"

namespace vramscope::serve {

namespace {

constexpr auto kStillGrowing = std::chrono::seconds(5);

bool written_lately(const std::filesystem::path& path) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  return !error && std::filesystem::file_time_type::clock::now() - written < kStillGrowing;
}

std::uintmax_t size_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return error ? 0 : bytes;
}

// Descriptors are given out from the lowest: the next one says how many are in use.
bool there_is_room() {
  const support::OwnedFd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return next && static_cast<std::size_t>(next.get()) < descriptors_for_traces();
}

}  // namespace

Result<std::unique_ptr<Library>> Library::open(const std::vector<std::string>& paths, bool follow) {
  std::unique_ptr<Library> library(new Library);
  library->sources_ = paths;
  library->follow_ = follow;
  for (const std::string& path : paths) {
    const auto found = analyze::traces_in(path);
    if (!found && !follow) return std::unexpected(found.error());
  }
  library->add_new_files();
  return library;
}

void Library::load(Entry& entry, bool follow) {
  entry.bytes = size_of(entry.path);
  if (!entry.opened && !there_is_room()) {
    entry.error = fmt::format("{}: not opened: the limit on open files (ulimit -n) allows for {} traces; raise it, or name fewer",
                              entry.path.string(), most_open_traces());
    return;
  }
  analyze::OpenOptions options;
  // The index of a file that is still being written would never be used again.
  options.keep_index = !follow || !written_lately(entry.path);
  auto engine = analyze::Engine::open(entry.path, options);
  if (!engine) {
    if (!entry.opened) entry.error = engine.error().message;  // a half-written header does not discard what was read
    return;
  }
  entry.error.clear();
  entry.opened = std::make_shared<const Opened>(std::move(*engine));
  entry.unfinished = entry.opened->overview().truncated;
}

void Library::add_new_files() {
  std::set<std::filesystem::path> known;
  for (const Entry& entry : entries_) known.insert(entry.path);
  for (const std::string& source : sources_) {
    const auto found = analyze::traces_in(source);
    if (!found) continue;
    for (const auto& path : *found) {
      if (!known.insert(path).second) continue;
      Entry entry;
      entry.path = path;
      entry.source = source;
      load(entry, follow_);
      const std::lock_guard lock(mutex_);
      entries_.push_back(std::move(entry));
      ++revision_;
    }
  }
}

bool Library::refresh() {
  const std::lock_guard one_at_a_time(refreshing_);
  const std::uint64_t before = revision();
  if (follow_) add_new_files();
  for (std::size_t i = 0; i < size(); ++i) {
    Entry copy;
    {
      const std::lock_guard lock(mutex_);
      copy = entries_[i];
    }
    if (size_of(copy.path) == copy.bytes) continue;
    load(copy, true);
    const std::lock_guard lock(mutex_);
    entries_[i] = std::move(copy);
    ++revision_;
  }
  return revision() != before;
}

std::size_t Library::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::string Library::name(std::size_t id) const {
  const std::lock_guard lock(mutex_);
  if (id >= entries_.size()) return {};
  const Entry& entry = entries_[id];
  std::string file = entry.path.filename().string();
  if (entry.path == entry.source) return file;
  std::string run = analyze::run_name(entry.source);
  const auto beside = std::ranges::count(entries_, entry.source, &Entry::source);
  if (beside == 1) return run;
  const auto rank = entry.opened ? entry.opened->overview().rank : std::nullopt;
  return rank ? fmt::format("{} rank {}", run, *rank) : fmt::format("{}/{}", run, file);
}

Result<std::shared_ptr<const Opened>> Library::trace(std::size_t id) const {
  const std::lock_guard lock(mutex_);
  if (id >= entries_.size()) return fail(fmt::format("there is no trace {}", id));
  if (!entries_[id].opened) return fail(entries_[id].error);
  return entries_[id].opened;
}

bool Library::live() const {
  const std::lock_guard lock(mutex_);
  if (recording_) return true;
  return follow_ &&
         std::any_of(entries_.begin(), entries_.end(), [](const Entry& e) { return e.unfinished && written_lately(e.path); });
}

void Library::set_recording(bool recording) {
  const std::lock_guard lock(mutex_);
  recording_ = recording;
  ++revision_;
}

std::uint64_t Library::revision() const {
  const std::lock_guard lock(mutex_);
  return revision_;
}

}  // namespace vramscope::serve
