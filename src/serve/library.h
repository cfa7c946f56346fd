// The traces that a server or a report shows: opened once, opened again when a file that is still being written has grown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "serve/opened.h"
#include "support/plain_file.h"
#include "support/result.h"

namespace vramscope::serve {

class Library {
 public:
  // Files or run folders. A trace that cannot be read stays in the list with its message.
  static Result<std::unique_ptr<Library>> open(const std::vector<std::string>& paths, bool follow);

  std::size_t size() const;
  // As the run's folder is named, with the rank or the file where it has several traces; a trace that was named itself, as its
  // file.
  std::string name(std::size_t id) const;
  // Shared: an answer that is being computed keeps its trace while a newer one replaces it.
  Result<std::shared_ptr<const Opened>> trace(std::size_t id) const;

  // Checks for new files and for files that have grown; true if there are any.
  bool refresh();
  // Whether a recording is in progress: a trace without an end has grown recently, or set_recording() was called.
  bool live() const;
  void set_recording(bool recording);
  std::uint64_t revision() const;

  // Call before the first request: the only folder from which source files are shown. NULL: none.
  void set_source_root(support::SourceRoot root) { source_root_.emplace(std::move(root)); }
  const support::SourceRoot* source_root() const { return source_root_ ? &*source_root_ : nullptr; }

 private:
  struct Entry {
    std::filesystem::path path;
    std::string source;  // what was named: this file or its folder
    std::shared_ptr<const Opened> opened;
    std::string error;
    std::uintmax_t bytes = 0;
    bool unfinished = false;  // has no end: killed, or still being written
  };

  Library() = default;
  void add_new_files();
  static void load(Entry& entry, bool follow);

  std::mutex refreshing_;  // taken before mutex_: one thread at a time looks at files
  mutable std::mutex mutex_;
  std::vector<std::string> sources_;
  std::vector<Entry> entries_;
  std::optional<support::SourceRoot> source_root_;
  bool follow_ = false;
  bool recording_ = false;
  std::uint64_t revision_ = 1;
};

}  // namespace vramscope::serve
