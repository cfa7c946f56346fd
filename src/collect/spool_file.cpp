#include "collect/spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "collect/file_lock.h"

namespace vramscope::collect {

Result<SpoolFile> SpoolFile::open(const std::filesystem::path& path) {
  SpoolFile spool;
  spool.path_ = path;
  spool.file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (spool.file_ < 0) return fail(fmt::format("{}: {}", path.string(), strerror(errno)));
  struct stat info{};
  if (fstat(spool.file_, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < static_cast<off_t>(spool::kHeaderBytes))
    return fail(fmt::format("{}: no spool (too short)", path.string()));
  void* mapped = mmap(nullptr, spool::kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, spool.file_, 0);
  if (mapped == MAP_FAILED) return fail(fmt::format("{}: cannot be mapped: {}", path.string(), strerror(errno)));
  spool.header_ = static_cast<spool::Header*>(mapped);
  if (spool.header_->magic != spool::kMagic) return fail(fmt::format("{}: no spool (foreign header)", path.string()));
  if (spool.header_->version != spool::kVersion || spool.header_->header_bytes != spool::kHeaderBytes)
    return fail(fmt::format("{}: spool version {}, this program reads {}: use the vramscope that recorded it", path.string(),
                            spool.header_->version, spool::kVersion));
  spool.lock_ = ::open(std::filesystem::path(path).replace_extension(".lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  spool.update();
  return spool;
}

SpoolFile::SpoolFile(SpoolFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      lock_(std::exchange(other.lock_, -1)),
      header_(std::exchange(other.header_, nullptr)),
      extents_(std::exchange(other.extents_, {})) {}

SpoolFile& SpoolFile::operator=(SpoolFile&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  file_ = std::exchange(other.file_, -1);
  lock_ = std::exchange(other.lock_, -1);
  header_ = std::exchange(other.header_, nullptr);
  extents_ = std::exchange(other.extents_, {});
  return *this;
}

SpoolFile::~SpoolFile() { close(); }

void SpoolFile::close() {
  for (std::byte* extent : extents_) munmap(extent, spool::kExtentBytes);
  if (header_ != nullptr) munmap(header_, spool::kHeaderBytes);
  if (file_ >= 0) ::close(file_);
  if (lock_ >= 0) ::close(lock_);
}

bool SpoolFile::is_locked() const { return lock_ >= 0 && collect::is_locked(lock_); }

bool SpoolFile::was_removed() const {
  struct stat info{};
  return fstat(file_, &info) == 0 && info.st_nlink == 0;
}

std::uint32_t SpoolFile::update() {
  const std::uint32_t count = header_->segment_count.load(std::memory_order_acquire);
  if (count <= segments()) return segments();
  struct stat info{};
  if (fstat(file_, &info) != 0) return segments();
  // Never map beyond the end of the file, whatever the header says: touching such a page is a SIGBUS.
  while (segments() + spool::kExtentSegments <= count) {
    const std::size_t offset = spool::kHeaderBytes + extents_.size() * spool::kExtentBytes;
    if (offset + spool::kExtentBytes > static_cast<std::size_t>(info.st_size)) break;
    void* mapped = mmap(nullptr, spool::kExtentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) break;
    extents_.push_back(static_cast<std::byte*>(mapped));
  }
  return segments();
}

spool::SegmentHeader* SpoolFile::segment(std::uint32_t index) const {
  std::byte* extent = extents_[index / spool::kExtentSegments];
  return reinterpret_cast<spool::SegmentHeader*>(extent + (index % spool::kExtentSegments) * spool::kSegmentBytes);
}

}  // namespace vramscope::collect
