#include "support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "support/owned_folder.h"
#include "support/regular_file.h"

namespace vramscope::support {
namespace {

std::unexpected<Error> io_error(const std::filesystem::path& path, const char* what, int error) {
  std::string message = path.string() + ": " + what + ": " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) message += "; free some space, or choose another folder";
  return fail(std::move(message));
}

}  // namespace

std::unexpected<Error> output_error(int reason) { return fail(std::string("cannot write the output: ") + std::strerror(reason)); }

Result<std::unique_ptr<AppendFile>> AppendFile::create(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return io_error(path, "cannot create the file", errno);
  return std::unique_ptr<AppendFile>(new AppendFile(fd, path));
}

AppendFile::~AppendFile() {
  // Returns the reserved space; if that fails, the file only takes more space than it shows.
  [[maybe_unused]] const bool released = reserved_ && ::ftruncate(fd_, static_cast<off_t>(size_)) == 0;
  ::close(fd_);
}

// Why the bytes should not even be started: an errno, or 0.
int AppendFile::problem_before(std::uint64_t bytes) {
  struct stat info{};
  if (::fstat(fd_, &info) == 0 && info.st_nlink == 0) return ENOENT;
  if (kept_free_ == 0) return 0;
  const auto needed = static_cast<off_t>(bytes + kept_free_);
  if (::fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_), needed) == 0) {
    reserved_ = true;
    return 0;
  }
  // Not every file system can reserve space; then none is reserved.
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
      // Writes by position, so that the next append goes to the same place even if truncating fails here.
      if (done > 0 && ::ftruncate(fd_, static_cast<off_t>(size_)) != 0)
        return io_error(path_, "cannot write or undo the write", error);
      return io_error(path_, "cannot write", error);
    }
  }
  size_ += done;
  return {};
}

Status AppendFile::sync() {
  if (::fdatasync(fd_) != 0) return io_error(path_, "cannot flush to disk", errno);
  return {};
}

Status AppendFile::rename(const std::filesystem::path& path) {
  if (::rename(path_.c_str(), path.c_str()) != 0) return io_error(path, "cannot replace the file", errno);
  path_ = path;
  return {};
}

Status replace_file(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path fresh = path.parent_path() / ("." + path.filename().string() + "." + random_name());
  auto file = AppendFile::create(fresh);
  if (!file) return std::unexpected(file.error());
  Status status = (*file)->append({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  if (status) status = (*file)->sync();
  if (status) status = (*file)->rename(path);
  if (!status) ::unlink(fresh.c_str());
  return status;
}

Result<ReadFile> ReadFile::open(const std::filesystem::path& path) {
  struct stat info{};
  const int fd = open_regular(AT_FDCWD, path.c_str(), O_RDONLY, info);
  if (fd < 0 && errno == EINVAL) return fail(path.string() + ": not a regular file");
  if (fd < 0) return io_error(path, "cannot open", errno);
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

ReadFile::Stretch ReadFile::next_data(std::uint64_t from) const {
  if (from >= size_) return {size_, size_};
  const off_t begin = ::lseek(fd_, static_cast<off_t>(from), SEEK_DATA);
  if (begin < 0) return errno == ENXIO ? Stretch{size_, size_} : Stretch{from, size_};
  const off_t end = ::lseek(fd_, begin, SEEK_HOLE);
  const Stretch found{static_cast<std::uint64_t>(begin), end > begin ? static_cast<std::uint64_t>(end) : size_};
  return {std::min(found.begin, size_), std::min(found.end, size_)};
}

std::uint64_t ReadFile::stored() const {
  std::uint64_t sum = 0;
  for (Stretch part = next_data(0); part.begin < part.end; part = next_data(part.end)) sum += part.end - part.begin;
  return sum;
}

Status ReadFile::read(std::uint64_t offset, std::span<std::uint8_t> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(fd_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (got == 0) {
      return fail(path_.string() + ": truncated to " + std::to_string(offset + done) + " bytes while it was open");
    } else if (errno != EINTR) {
      return io_error(path_, "cannot read", errno);
    }
  }
  return {};
}

}  // namespace vramscope::support
