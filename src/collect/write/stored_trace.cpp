#include "collect/write/stored_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "collect/write/own_note.h"
#include "support/owned_folder.h"

namespace vramscope::collect {

namespace {

bool may_be_named(const std::string& name, const StoredSearch& search) {
  return name.starts_with(search.stem) && name.ends_with(".vram") && name.find('/') == std::string::npos;
}

std::optional<StoredTrace> open_stored(const std::string& name, const StoredSearch& search) {
  if (!may_be_named(name, search)) return std::nullopt;
  const std::filesystem::path path = search.output / name;
  const int file = support::open_own_file(path, O_RDONLY);
  if (file < 0) return std::nullopt;
  // By its descriptor: the name may lead to another file by now.
  auto reader = trace::Reader::open(fmt::format("/proc/self/fd/{}", file));
  close(file);
  if (!reader || reader->start_realtime_us() != search.start_realtime_us) return std::nullopt;
  return StoredTrace{path, std::move(*reader)};
}

bool is_better(const StoredTrace& one, const StoredTrace& other) {
  if (one.is_complete() != other.is_complete()) return other.is_complete();
  return one.reader.events() > other.reader.events();
}

}  // namespace

std::uint64_t StoredTrace::last_seq() const {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < reader.chunks(); ++i)
    if (const auto chunk = reader.chunk(i); chunk && !chunk->seq.empty()) last = std::max(last, std::ranges::max(chunk->seq));
  return last;
}

void note_trace(const std::filesystem::path& note, const std::filesystem::path& trace) {
  write_own_note(note, trace.filename().string());
}

std::optional<StoredTrace> find_stored(const StoredSearch& search) {
  if (auto noted = open_stored(read_own_note(search.note), search)) return noted;
  std::optional<StoredTrace> best;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(search.output, error); !error && it != std::filesystem::directory_iterator();
       it.increment(error)) {
    auto found = open_stored(it->path().filename().string(), search);
    if (found && (!best || is_better(*found, *best))) best = std::move(found);
  }
  return best;
}

std::filesystem::path find_empty(const StoredSearch& search) {
  const std::string name = read_own_note(search.note);
  if (!may_be_named(name, search)) return {};
  const std::filesystem::path path = search.output / name;
  const int file = support::open_own_file(path, O_RDONLY);
  if (file < 0) return {};
  struct stat info{};
  const bool empty = fstat(file, &info) == 0 && info.st_size == 0;
  close(file);
  return empty ? path : std::filesystem::path();
}

}  // namespace vramscope::collect
