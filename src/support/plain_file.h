// Small regular files whose names came from a recorded program or a trace. Reading one never waits, never has a side effect on
// a device, and never accepts what only looks like a file (/proc, /sys).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>

#include "support/result.h"

namespace vramscope::support {

enum class PlainFault : std::uint8_t { missing, unreadable, not_regular, too_large };

struct PlainFile {
  std::string bytes;
  uid_t owner = 0;
  bool public_readable = false;  // everyone on the machine may read it
  bool secret = false;           // nobody but its owner may read or change it
  std::uint64_t written_us = 0;  // since 1970
};

// No source file that a person wrote is larger.
inline constexpr std::uint64_t kLargestSourceFile = 2 << 20;

using PlainResult = std::expected<PlainFile, PlainFault>;

// Links are followed: only the file itself matters.
PlainResult read_plain_file(const std::string& path, std::uint64_t most_bytes);

// A folder named by the user that cannot be left: no part of a path under it may be a link or "..".
class SourceRoot {
 public:
  static Result<SourceRoot> open(const std::filesystem::path& folder);
  SourceRoot(SourceRoot&& other) noexcept;
  SourceRoot& operator=(SourceRoot&&) = delete;
  ~SourceRoot();

  PlainResult read(std::string_view relative, std::uint64_t most_bytes) const;
  const std::filesystem::path& path() const { return path_; }  // without links

 private:
  SourceRoot(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}

  int fd_;
  std::filesystem::path path_;
};

}  // namespace vramscope::support
