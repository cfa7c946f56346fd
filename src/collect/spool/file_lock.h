// POSIX locks as signs of life: the kernel releases them when their holder dies.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "support/owned_folder.h"

namespace vramscope::collect {

// The other process that holds a lock on the file: its number, or one below 1 if that is not visible here.
inline std::optional<pid_t> lock_holder(int descriptor) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(descriptor, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return lock.l_pid;
}

// Whether another process holds a write lock on the file.
inline bool is_locked(int descriptor) { return lock_holder(descriptor).has_value(); }

inline bool is_locked(const std::filesystem::path& file) {
  const int descriptor = support::open_own_file(file, O_RDWR);
  if (descriptor < 0) return false;
  const bool held = is_locked(descriptor);
  close(descriptor);
  return held;
}

}  // namespace vramscope::collect
