#include "collect/spool/spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "collect/spool/file_lock.h"
#include "support/owned_folder.h"

namespace vramscope::collect {

Result<SpoolFile> SpoolFile::open(const std::filesystem::path& path, Changes changes) {
  SpoolFile spool;
  spool.path_ = path;
  spool.sharing_ = changes == Changes::shared ? MAP_SHARED : MAP_PRIVATE;
  spool.file_ = support::open_own_file(path, O_RDWR);
  if (spool.file_ < 0) return fail(fmt::format("{}: {}", path.string(), strerror(errno)));
  struct stat info{};
  if (fstat(spool.file_, &info) != 0 || info.st_size < static_cast<off_t>(spool::kHeaderBytes))
    return fail(fmt::format("{}: not a spool (too short)", path.string()));
  void* mapped = mmap(nullptr, spool::kHeaderBytes, PROT_READ | PROT_WRITE, spool.sharing_, spool.file_, 0);
  if (mapped == MAP_FAILED) return fail(fmt::format("{}: cannot map the spool: {}", path.string(), strerror(errno)));
  spool.mappings_.push_back(std::make_unique<GuardedMapping>(mapped, spool::kHeaderBytes));
  spool.header_ = static_cast<spool::Header*>(mapped);
  if (spool.header_->magic != spool::kMagic) return fail(fmt::format("{}: not a spool (unknown header)", path.string()));
  if (spool.header_->version != spool::kVersion || spool.header_->header_bytes != spool::kHeaderBytes)
    return fail(fmt::format("{}: spool version {}, but this vramscope reads {}; use the version that recorded it", path.string(),
                            spool.header_->version, spool::kVersion));
  spool.lock_ = support::open_own_file(std::filesystem::path(path).replace_extension(".lock"), O_RDWR);
  spool.update();
  return spool;
}

SpoolFile::SpoolFile(SpoolFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      lock_(std::exchange(other.lock_, -1)),
      sharing_(other.sharing_),
      header_(std::exchange(other.header_, nullptr)),
      mappings_(std::exchange(other.mappings_, {})) {}

SpoolFile& SpoolFile::operator=(SpoolFile&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  file_ = std::exchange(other.file_, -1);
  lock_ = std::exchange(other.lock_, -1);
  sharing_ = other.sharing_;
  header_ = std::exchange(other.header_, nullptr);
  mappings_ = std::exchange(other.mappings_, {});
  return *this;
}

SpoolFile::~SpoolFile() { close(); }

void SpoolFile::close() {
  if (file_ >= 0) ::close(file_);
  if (lock_ >= 0) ::close(lock_);
}

bool SpoolFile::is_locked() const { return lock_ >= 0 && collect::is_locked(lock_); }

std::optional<std::uint32_t> SpoolFile::lock_holder() const {
  const auto holder = lock_ >= 0 ? collect::lock_holder(lock_) : std::nullopt;
  return holder ? std::optional(static_cast<std::uint32_t>(std::max(*holder, 0))) : std::nullopt;
}

uid_t SpoolFile::owner() const {
  struct stat info{};
  return fstat(file_, &info) == 0 ? info.st_uid : static_cast<uid_t>(-1);
}

bool SpoolFile::was_removed() const {
  struct stat info{};
  return fstat(file_, &info) == 0 && info.st_nlink == 0;
}

bool SpoolFile::was_cut() const {
  return std::ranges::any_of(mappings_, [](const auto& mapping) { return mapping->was_cut(); });
}

// The process would get the same signal for its next event. The flag is in the first page, which comes back with the write.
void SpoolFile::restore_length() const {
  const std::uint32_t stop = 1;
  const auto bytes = static_cast<off_t>(spool::kHeaderBytes + extents() * spool::kExtentBytes);
  struct stat info{};
  if (pwrite(file_, &stop, sizeof stop, offsetof(spool::Header, stop)) != sizeof stop) return;
  if (fstat(file_, &info) == 0 && info.st_size < bytes && ftruncate(file_, bytes) != 0) return;
}

std::uint32_t SpoolFile::update() {
  const std::uint32_t count = header_->segment_count.load(std::memory_order_acquire);
  if (count <= segments()) return segments();
  struct stat info{};
  if (fstat(file_, &info) != 0) return segments();
  // Never map beyond the end of the file, whatever the header says: touching such a page raises SIGBUS.
  while (segments() + spool::kExtentSegments <= count) {
    const std::size_t offset = spool::kHeaderBytes + extents() * spool::kExtentBytes;
    if (offset + spool::kExtentBytes > static_cast<std::size_t>(info.st_size)) break;
    void* mapped = mmap(nullptr, spool::kExtentBytes, PROT_READ | PROT_WRITE, sharing_, file_, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) break;
    mappings_.push_back(std::make_unique<GuardedMapping>(mapped, spool::kExtentBytes));
  }
  return segments();
}

spool::SegmentHeader* SpoolFile::segment(std::uint32_t index) const {
  std::byte* extent = mappings_[1 + index / spool::kExtentSegments]->data();
  return reinterpret_cast<spool::SegmentHeader*>(extent + (index % spool::kExtentSegments) * spool::kSegmentBytes);
}

}  // namespace vramscope::collect
