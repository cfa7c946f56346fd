#include "support/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

namespace vramscope::support {

namespace {

bool is_regular(const struct stat& info) {
  if (S_ISREG(info.st_mode)) return true;
  errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
  return false;
}

}  // namespace

int open_regular(int folder, const char* path, int flags, struct stat& info) {
  // Looked at before it is opened: opening a device, such as a watchdog or a tape, or a pipe has an effect already. Opened
  // without waiting: a pipe put there in between would wait for a writer forever.
  const int look = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  if (fstatat(folder, path, &info, look) == 0 && !is_regular(info)) return -1;
  constexpr mode_t kOnlyOurs = 0600;
  const int file = openat(folder, path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, kOnlyOurs);
  if (file < 0) return -1;
  if (fstat(file, &info) == 0 && is_regular(info)) return file;
  const int reason = errno;
  close(file);
  errno = reason;
  return -1;
}

}  // namespace vramscope::support
