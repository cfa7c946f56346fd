#include "support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace vramscope::support {
namespace {

std::unexpected<Error> io_error(const std::filesystem::path& path, const char* what, int error) {
  std::string message = path.string() + ": " + what + ": " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) message += "; free some space or choose another folder";
  return fail(std::move(message));
}

}  // namespace

Result<std::unique_ptr<AppendFile>> AppendFile::create(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return io_error(path, "cannot create the file", errno);
  return std::unique_ptr<AppendFile>(new AppendFile(fd, path));
}

AppendFile::~AppendFile() {
  // What was kept free is given back; where that fails the file only takes more space than it shows.
  [[maybe_unused]] const bool released = reserved_ && ::ftruncate(fd_, static_cast<off_t>(size_)) == 0;
  ::close(fd_);
}

// Why the bytes should not even be begun: an errno, or 0.
int AppendFile::problem_before(std::uint64_t bytes) {
  struct stat info{};
  if (::fstat(fd_, &info) == 0 && info.st_nlink == 0) return ENOENT;
  if (kept_free_ == 0) return 0;
  const auto needed = static_cast<off_t>(bytes + kept_free_);
  if (::fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_), needed) == 0) {
    reserved_ = true;
    return 0;
  }
  // Not every file system can keep space free; then nothing is kept.
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
}

Status AppendFile::append(ByteSpan bytes) {
  if (const int problem = problem_before(bytes.size()); problem == ENOENT)
    return fail(path_.string() + ": the file was removed");
  else if (problem != 0)
    return io_error(path_, "cannot write", problem);
  std::uint64_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(size_ + done));
    if (wrote > 0) {
      done += static_cast<std::uint64_t>(wrote);
    } else if (wrote < 0 && errno == EINTR) {
      continue;
    } else {
      const int error = wrote < 0 ? errno : ENOSPC;
      // Writing goes by position, so that the next append lands on the same place even if the cut fails here.
      if (done > 0 && ::ftruncate(fd_, static_cast<off_t>(size_)) != 0)
        return io_error(path_, "cannot write or take back", error);
      return io_error(path_, "cannot write", error);
    }
  }
  size_ += done;
  return {};
}

Status AppendFile::sync() {
  if (::fdatasync(fd_) != 0) return io_error(path_, "cannot write to the disk", errno);
  return {};
}

Status AppendFile::rename(const std::filesystem::path& path) {
  if (::rename(path_.c_str(), path.c_str()) != 0) return io_error(path, "cannot replace the file", errno);
  path_ = path;
  return {};
}

Result<ReadFile> ReadFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer for ever.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return io_error(path, "cannot open", errno);
  struct stat info{};
  const int error = ::fstat(fd, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
  if (error != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    if (error != 0) return io_error(path, "cannot open", error);
    return fail(path.string() + ": not a regular file");
  }
  return ReadFile(fd, static_cast<std::uint64_t>(info.st_size), path);
}

ReadFile::ReadFile(ReadFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), size_(other.size_), path_(std::move(other.path_)) {}

ReadFile& ReadFile::operator=(ReadFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

ReadFile::~ReadFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status ReadFile::read(std::uint64_t offset, std::span<std::uint8_t> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(fd_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (got == 0) {
      return fail(path_.string() + ": ends at byte " + std::to_string(offset + done) + ", shorter than when it was opened");
    } else if (errno != EINTR) {
      return io_error(path_, "cannot read", errno);
    }
  }
  return {};
}

}  // namespace vramscope::support
