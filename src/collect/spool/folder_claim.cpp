#include "collect/spool/folder_claim.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "collect/spool/spool_folder.h"
#include "support/owned_folder.h"

namespace vramscope::collect {

// The collector holds a lock of its process, a recovery one of its open file: the kernel reports no process for the latter, which
// distinguishes them.
Result<FolderClaim> FolderClaim::take(const std::filesystem::path& spool_folder, const std::filesystem::path& output) {
  const auto path = spool_folder / kClaimName;
  FolderClaim claim(support::open_own_file(path, O_RDWR | O_CREAT));
  if (claim.file_ < 0) return fail(fmt::format("{}: cannot lock the spool: {}", path.string(), strerror(errno)));
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  struct flock holder = lock;
  if (fcntl(claim.file_, F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES)
      return fail(fmt::format("{}: cannot lock the spool: {}", path.string(), strerror(errno)));
    const bool recovery = fcntl(claim.file_, F_OFD_GETLK, &holder) == 0 && (holder.l_type == F_UNLCK || holder.l_pid == -1);
    if (recovery) return fail(fmt::format("{}: another recovery is running; wait until it has finished", output.string()));
    return fail(fmt::format("{}: still being recorded; the recording ends when the command exits", output.string()));
  }
  struct stat info{};
  if (fstat(claim.file_, &info) != 0 || info.st_nlink == 0)
    return fail(fmt::format("{}: another recovery has just finished", output.string()));
  return claim;
}

FolderClaim::FolderClaim(FolderClaim&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderClaim& FolderClaim::operator=(FolderClaim&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

FolderClaim::~FolderClaim() {
  if (file_ >= 0) close(file_);
}

}  // namespace vramscope::collect
