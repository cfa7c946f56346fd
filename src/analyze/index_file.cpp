#include "analyze/index_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace vramscope::analyze {
namespace {

constexpr std::uint64_t kMagic = 0x58444e494d415256;  // "VRAMINDX"
// Raise it with every change of a section's meaning, of Kind, of the attribution rules.
constexpr std::uint32_t kIndexVersion = 12;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kAlwaysVerified = 8u << 20;  // sections up to this size are checked whole at every opening
constexpr std::uint64_t kProbe = 1u << 20;           // larger ones: this much at the front and at the back

struct Header {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t sections = 0;
  Fingerprint trace;
  std::uint64_t file_bytes = 0;
  std::array<SectionEntry, 64> entry{};
  std::uint64_t checksum = 0;  // of everything before
};
static_assert(sizeof(Header) <= kPage);

std::uint64_t page_up(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::uint64_t header_checksum(const Header& header) { return XXH3_64bits(&header, offsetof(Header, checksum)); }

// What one opening can afford to read of a section: all of a small one, both ends of a column of gigabytes.
std::uint64_t section_checksum(const std::byte* data, std::uint64_t bytes) {
  if (bytes <= kAlwaysVerified) return XXH3_64bits(data, bytes);
  return XXH3_64bits(data, kProbe) ^ (XXH3_64bits(data + bytes - kProbe, kProbe) * 31) ^ bytes;
}

}  // namespace

Result<Fingerprint> fingerprint(const std::filesystem::path& trace) {
  int fd = ::open(trace.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail(fmt::format("cannot open {}: {}", trace.string(), std::strerror(errno)));
  struct stat st{};
  ::fstat(fd, &st);
  Fingerprint out{static_cast<std::uint64_t>(st.st_size), 0};
  std::vector<char> part(64 * 1024);
  auto hash_at = [&](off_t offset) {
    ssize_t n = ::pread(fd, part.data(), part.size(), offset);
    return XXH3_64bits(part.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  };
  out.hash = hash_at(0) ^ (hash_at(std::max<off_t>(0, st.st_size - static_cast<off_t>(part.size()))) << 1);
  ::close(fd);
  return out;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Result<Mapping> Mapping::map(int fd, std::uint64_t bytes, bool writable) {
  void* data = ::mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return fail(fmt::format("cannot map {} bytes of the index: {}", bytes, std::strerror(errno)));
  Mapping out;
  out.data_ = static_cast<std::byte*>(data);
  out.size_ = bytes;
  return out;
}

Result<IndexFile> IndexFile::open(const std::filesystem::path& path, const Fingerprint& trace) {
  // Without O_NONBLOCK a named pipe would wait for a writer for ever.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail("no index");
  struct stat st{};
  ::fstat(fd, &st);
  auto bytes = S_ISREG(st.st_mode) ? static_cast<std::uint64_t>(st.st_size) : 0;
  auto mapping = bytes >= kPage ? Mapping::map(fd, bytes, false) : Result<Mapping>(fail("index too short"));
  ::close(fd);
  if (!mapping) return std::unexpected(mapping.error());
  Header header;
  std::memcpy(&header, mapping->data(), sizeof header);
  if (header.magic != kMagic || header.version != kIndexVersion) return fail("index of another version");
  if (header.checksum != header_checksum(header) || header.file_bytes != bytes || header.sections > header.entry.size())
    return fail("index damaged");
  if (!(header.trace == trace)) return fail("index of another trace");
  for (std::size_t i = 0; i < header.sections; ++i) {
    const SectionEntry& e = header.entry[i];
    if (e.offset > bytes || e.bytes > bytes - e.offset || e.element == 0 || e.bytes % e.element != 0)
      return fail("index damaged");
    if (section_checksum(mapping->data() + e.offset, e.bytes) != e.checksum) return fail("index damaged");
  }
  IndexFile out;
  out.mapping_ = std::move(*mapping);
  return out;
}

std::pair<const std::byte*, std::uint64_t> IndexFile::find(Section id, std::size_t element) const {
  Header header;
  std::memcpy(&header, mapping_.data(), sizeof header);
  for (std::size_t i = 0; i < header.sections; ++i) {
    const SectionEntry& e = header.entry[i];
    if (e.id == static_cast<std::uint32_t>(id) && e.element == element) return {mapping_.data() + e.offset, e.bytes};
  }
  return {nullptr, 0};
}

struct IndexBuilder::File {
  int fd = -1;
  std::filesystem::path path, temporary;
  std::uint64_t end = kPage;
  Header header;
  std::vector<Mapping> columns;
};

void IndexBuilder::Close::operator()(File* file) const {
  if (file->fd >= 0) ::close(file->fd);
  if (!file->temporary.empty()) ::unlink(file->temporary.c_str());
  delete file;
}

IndexBuilder::~IndexBuilder() = default;

Result<IndexBuilder> IndexBuilder::create(const std::filesystem::path& path) {
  IndexBuilder out;
  out.file_.reset(new File);
  File& file = *out.file_;
  file.path = path;
  if (!path.empty()) {
    file.temporary = path;
    file.temporary += fmt::format(".{}.tmp", ::getpid());
    file.fd = ::open(file.temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }
  if (file.fd < 0) {  // the folder is read-only: keep the index in memory
    file.path.clear();
    file.temporary.clear();
    file.fd = ::memfd_create("vramscope-index", MFD_CLOEXEC);
  }
  if (file.fd < 0) return fail(fmt::format("cannot create the index: {}", std::strerror(errno)));
  return out;
}

Result<std::byte*> IndexBuilder::reserve(Section id, std::size_t element, std::uint64_t bytes) {
  File& file = *file_;
  if (file.header.sections == file.header.entry.size()) return fail("too many index sections");
  std::uint64_t offset = file.end;
  file.end += page_up(std::max<std::uint64_t>(bytes, 1));
  if (::ftruncate(file.fd, static_cast<off_t>(file.end)) != 0)
    return fail(fmt::format("cannot write the index: {}; free {} MiB or move the trace", std::strerror(errno), file.end >> 20));
  // A hole in a file on a full disk is a SIGBUS later; allocated blocks are an error now.
  if (!file.path.empty() &&
      ::posix_fallocate(file.fd, static_cast<off_t>(offset), static_cast<off_t>(page_up(std::max<std::uint64_t>(bytes, 1)))) != 0)
    return fail(fmt::format("no room for the index of {} MiB beside the trace", file.end >> 20));
  file.header.entry[file.header.sections++] = {static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(element), offset, bytes,
                                               0};
  void* data = ::mmap(nullptr, page_up(std::max<std::uint64_t>(bytes, 1)), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd,
                      static_cast<off_t>(offset));
  if (data == MAP_FAILED) return fail(fmt::format("cannot map the index: {}", std::strerror(errno)));
  auto whole = Mapping::adopt(static_cast<std::byte*>(data), page_up(std::max<std::uint64_t>(bytes, 1)));
  file.columns.push_back(std::move(whole));
  return static_cast<std::byte*>(data);
}

Status IndexBuilder::write(Section id, std::size_t element, const void* data, std::uint64_t bytes) {
  auto place = reserve(id, element, bytes);
  if (!place) return std::unexpected(place.error());
  if (bytes > 0) std::memcpy(*place, data, bytes);
  return {};
}

Result<IndexFile> IndexBuilder::seal(const Fingerprint& trace) {
  File& file = *file_;
  file.columns.clear();
  auto mapping = Mapping::map(file.fd, file.end, true);
  if (!mapping) return std::unexpected(mapping.error());
  Header& header = file.header;
  header.magic = kMagic;
  header.version = kIndexVersion;
  header.trace = trace;
  header.file_bytes = file.end;
  for (std::size_t i = 0; i < header.sections; ++i)
    header.entry[i].checksum = section_checksum(mapping->data() + header.entry[i].offset, header.entry[i].bytes);
  header.checksum = header_checksum(header);
  std::memcpy(mapping->data(), &header, sizeof header);
  IndexFile out;
  out.mapping_ = std::move(*mapping);
  if (!file.path.empty() && ::rename(file.temporary.c_str(), file.path.c_str()) == 0) file.temporary.clear();
  return out;
}

}  // namespace vramscope::analyze
