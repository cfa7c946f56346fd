// The collector's view of one spool file: header and segments, mapped as the process adds them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "collect/spool/guarded_mapping.h"
#include "spool/layout.h"
#include "support/result.h"

namespace vramscope::collect {

// The other side may be killed, stopped or wrong at any instant: readers copy first and check the copy.
class SpoolFile {
 public:
  // shared: what we change is seen by the process. copy: changes stay in our memory, the file is only read.
  enum class Changes { shared, copy };

  static Result<SpoolFile> open(const std::filesystem::path& path, Changes changes = Changes::shared);
  SpoolFile(SpoolFile&& other) noexcept;
  SpoolFile& operator=(SpoolFile&& other) noexcept;
  ~SpoolFile();

  spool::Header& header() const { return *header_; }
  const std::filesystem::path& path() const { return path_; }
  // Whether the process holds the lock next to its spool. The lock file stays open here, so that removing the folder does not
  // end a recording.
  bool is_locked() const;
  // The process that holds it, as our PID namespace numbers it: 0 if it is not visible there, nothing if nobody holds the lock.
  std::optional<std::uint32_t> lock_holder() const;
  // The user of the process that created it.
  uid_t owner() const;
  // Its name was removed: the process continues with what it has and cannot extend it.
  bool was_removed() const;
  // Something truncated it: what was behind the new end reads as zeros.
  bool was_cut() const;
  // Gives it back its length and tells the process to record nothing more.
  void restore_length() const;

  // Maps what was added since the last call. Returns the number of readable segments.
  std::uint32_t update();
  std::uint32_t segments() const { return static_cast<std::uint32_t>(extents() * spool::kExtentSegments); }
  spool::SegmentHeader* segment(std::uint32_t index) const;

 private:
  SpoolFile() = default;
  void close();
  std::size_t extents() const { return mappings_.empty() ? 0 : mappings_.size() - 1; }

  std::filesystem::path path_;
  int file_ = -1;
  int lock_ = -1;
  int sharing_ = 0;  // MAP_SHARED or MAP_PRIVATE
  spool::Header* header_ = nullptr;
  std::vector<std::unique_ptr<GuardedMapping>> mappings_;  // the header, then the extents
};

}  // namespace vramscope::collect
