// The traces that a server or a report shows: opened once, opened again when a file that is still being written has grown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/opened.h"
#include "support/result.h"

namespace vramscope::serve {

class Library {
 public:
  // Files or run folders. A trace that cannot be read stays in the list with its message.
  static Result<std::unique_ptr<Library>> open(const std::vector<std::string>& paths, bool follow);

  std::size_t size() const;
  std::string name(std::size_t id) const;
  // Shared: an answer in the making keeps its trace while a newer one replaces it.
  Result<std::shared_ptr<const Opened>> trace(std::size_t id) const;

  // Looks whether files have grown or come; true if something is new. Called from one thread.
  bool refresh();
  // A recording is going on: some trace has no end yet and has grown lately, or the recorder says so.
  bool live() const;
  void set_recording(bool recording);
  std::uint64_t revision() const;

 private:
  struct Entry {
    std::filesystem::path path;
    std::shared_ptr<const Opened> opened;
    std::string error;
    std::uintmax_t bytes = 0;
    bool unfinished = false;  // no end yet: killed, or still being written
  };

  Library() = default;
  void add_new_files();
  static void load(Entry& entry, bool follow);

  mutable std::mutex mutex_;
  std::vector<std::string> sources_;
  std::vector<Entry> entries_;
  bool follow_ = false;
  bool recording_ = false;
  std::uint64_t revision_ = 1;
};

}  // namespace vramscope::serve
