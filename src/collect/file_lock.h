// POSIX locks as signs of life: the kernel drops them with their holder.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

namespace vramscope::collect {

// Whether another process holds a write lock on the file.
inline bool is_locked(int descriptor) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

inline bool is_locked(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = is_locked(descriptor);
  close(descriptor);
  return held;
}

}  // namespace vramscope::collect
