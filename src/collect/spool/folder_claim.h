// The right to read a spool folder: one collector or one recovery at a time.
#pragma once

#include <filesystem>

#include "support/result.h"

namespace vramscope::collect {

// Held by a recovery for as long as the object lives; the kernel releases it when the process dies.
class FolderClaim {
 public:
  FolderClaim() = default;  // of nothing
  // Fails if a collector is alive or another recovery is running. `output` is named in the message.
  static Result<FolderClaim> take(const std::filesystem::path& spool_folder, const std::filesystem::path& output);
  FolderClaim(FolderClaim&& other) noexcept;
  FolderClaim& operator=(FolderClaim&& other) noexcept;
  ~FolderClaim();

 private:
  explicit FolderClaim(int file) : file_(file) {}

  int file_ = -1;
};

}  // namespace vramscope::collect
