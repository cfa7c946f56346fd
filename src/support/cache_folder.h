// The user's own cache: $XDG_CACHE_HOME/vramscope, or ~/.cache/vramscope.
//
// The folder belongs to the user who runs the program, and nobody else can enter it (0700). If that is not possible, there is no
// cache, and every caller works without one. Nothing in it is opened through a link, and a file appears under its name complete
// and on disk, or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "support/owned_fd.h"

namespace vramscope::support {

class CacheFolder {
 public:
  // `place` empty: the user's own. Creates the folder if it is missing.
  static std::optional<CacheFolder> open(const std::filesystem::path& place = {});

  // Opens a regular file of this user for reading; otherwise the result is an fd that is not open.
  OwnedFd read(const std::string& name) const;
  // Calls `write` with an empty file. If it returns true, the file is published as `name` and replaces an older one.
  bool publish(const std::string& name, const std::function<bool(int fd)>& write) const;
  // Marks the file as just used, so that it is deleted last.
  static void touch(int fd);
  void remove(const std::string& name) const;
  // Deletes the least recently used of our files that end in `suffix` until they take at most `limit` bytes in total.
  void trim(std::string_view suffix, std::uint64_t limit) const;

 private:
  explicit CacheFolder(OwnedFd folder) : folder_(std::move(folder)) {}
  OwnedFd folder_;
};

}  // namespace vramscope::support
