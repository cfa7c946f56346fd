// The collector's view of one spool file: header and segments, mapped as the process adds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "spool/layout.h"
#include "support/result.h"

namespace vramscope::collect {

// The other side may be killed, stopped or wrong at any instant: whoever reads through this copies first and checks the copy.
class SpoolFile {
 public:
  static Result<SpoolFile> open(const std::filesystem::path& path);
  SpoolFile(SpoolFile&& other) noexcept;
  SpoolFile& operator=(SpoolFile&& other) noexcept;
  ~SpoolFile();

  spool::Header& header() const { return *header_; }
  const std::filesystem::path& path() const { return path_; }
  // The process holds the lock beside its spool. The lock file stays open here: whoever removes the folder ends no recording.
  bool is_locked() const;
  // Its name is gone: the process goes on in what it has, and cannot add to it.
  bool was_removed() const;

  // Maps what was added since the last call; the number of segments that can be read.
  std::uint32_t update();
  std::uint32_t segments() const { return static_cast<std::uint32_t>(extents_.size() * spool::kExtentSegments); }
  spool::SegmentHeader* segment(std::uint32_t index) const;

 private:
  SpoolFile() = default;
  void close();

  std::filesystem::path path_;
  int file_ = -1;
  int lock_ = -1;
  spool::Header* header_ = nullptr;
  std::vector<std::byte*> extents_;
};

}  // namespace vramscope::collect
