#include "analyze/index/index_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>

#include "analyze/index/parallel.h"

namespace vramscope::analyze {
namespace {

using support::Buffer;
using support::ByteSpan;
using support::ChecksumKey;

// Raise it whenever the meaning of a section, Kind or the attribution rules change.
constexpr std::uint32_t kIndexVersion = 21;
constexpr std::uint32_t kMostSections = 64;
constexpr std::uint64_t kTableBlock = 256u << 10;  // bytes of a table's block, about
constexpr int kLevel = 1;                          // of zstd: the user waits while an index is built

// Columns are unpacked at first use, tables when the index is opened.
bool is_column(Section id) {
  switch (id) {
    case Section::birth:
    case Section::death:
    case Section::kind:
    case Section::attributes:
    case Section::address:
    case Section::ref:
    case Section::tick:
    case Section::class_order:
      return true;
    default:
      return false;
  }
}

// Columns that mostly rise, or that repeat at a distance, pack better as differences.
bool as_differences(Section id) {
  return is_column(id) && id != Section::kind && id != Section::attributes && id != Section::address;
}

std::uint64_t values_of_block(Section id, std::size_t element) {
  return is_column(id) ? kColumnBlock : std::max<std::uint64_t>(1, kTableBlock / element);
}

ByteSpan bytes_of(const void* data, std::uint64_t bytes) { return {static_cast<const std::uint8_t*>(data), bytes}; }

bool read_all(int fd, std::uint64_t offset, void* into, std::uint64_t bytes) {
  for (auto* at = static_cast<char*>(into); bytes > 0;) {
    const ssize_t got = ::pread(fd, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
  return true;
}

bool write_all(int fd, std::uint64_t offset, ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    offset += static_cast<std::uint64_t>(wrote);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return true;
}

void to_differences(std::span<const std::uint32_t> values, std::span<std::uint32_t> out) {
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = values[i] - std::exchange(before, values[i]);
}

void from_differences(std::span<std::uint32_t> values) {
  std::uint32_t sum = 0;
  for (std::uint32_t& value : values) value = sum += value;
}

struct Stored {
  int fd;
  const ChecksumKey& key;
};

// The stored bytes of a block, if they are those that were written.
bool fetch(const Stored& file, const PackedBlock& block, Buffer& stored) {
  stored.resize(block.stored);
  return read_all(file.fd, block.offset, stored.data(), block.stored) && support::checksum(stored, file.key) == block.checksum;
}

bool unpack(const Stored& file, const PackedBlock& block, bool differences, std::byte* to) {
  thread_local Buffer stored;
  if (!fetch(file, block, stored)) return false;
  if (!support::decompress(stored, {reinterpret_cast<std::uint8_t*>(to), block.bytes})) return false;
  if (differences) from_differences({reinterpret_cast<std::uint32_t*>(to), block.bytes / sizeof(std::uint32_t)});
  return true;
}

std::unexpected<Error> damaged() { return fail("index damaged"); }

std::uint64_t header_checksum(const IndexHeader& header, const ChecksumKey& key) {
  return support::checksum(bytes_of(&header, offsetof(IndexHeader, checksum)), key);
}

Result<IndexHeader> read_header(const Stored& file, const support::WideChecksum& trace, std::uint64_t file_bytes) {
  IndexHeader header;
  if (!read_all(file.fd, 0, &header, sizeof header)) return fail("not an index");
  if (header.magic != kIndexMagic || header.version != kIndexVersion) return fail("index of another version");
  if (header.checksum != header_checksum(header, file.key)) return damaged();
  if (header.trace != trace) return fail("index of another trace");
  if (header.file_bytes != file_bytes || header.directory_offset > file_bytes || header.sections == 0 ||
      header.sections > kMostSections || header.blocks == 0)
    return damaged();
  const std::uint64_t directory_bytes = file_bytes - header.directory_offset;
  if (header.blocks > directory_bytes / sizeof(PackedBlock) ||
      directory_bytes != header.sections * sizeof(IndexSection) + header.blocks * sizeof(PackedBlock))
    return damaged();
  return header;
}

struct Directory {
  std::vector<IndexSection> sections;
  std::vector<PackedBlock> blocks;
};

Result<Directory> read_directory(const Stored& file, const IndexHeader& header) {
  Buffer bytes(header.file_bytes - header.directory_offset);
  if (!read_all(file.fd, header.directory_offset, bytes.data(), bytes.size()) ||
      support::checksum(bytes, file.key) != header.directory_checksum)
    return damaged();
  Directory out{std::vector<IndexSection>(header.sections), std::vector<PackedBlock>(header.blocks)};
  const std::size_t section_bytes = out.sections.size() * sizeof(IndexSection);
  std::memcpy(out.sections.data(), bytes.data(), section_bytes);
  std::memcpy(out.blocks.data(), bytes.data() + section_bytes, out.blocks.size() * sizeof(PackedBlock));
  return out;
}

// Whether the blocks of a section are exactly its values, and lie within the file.
bool fit(const IndexSection& section, std::span<const PackedBlock> blocks, std::uint64_t file_bytes) {
  const std::uint64_t per_block = values_of_block(static_cast<Section>(section.id), section.element);
  for (std::uint64_t i = 0; i < blocks.size(); ++i) {
    const std::uint64_t values = std::min(per_block, section.count - i * per_block);
    if (blocks[i].bytes != values * section.element || blocks[i].offset > file_bytes ||
        blocks[i].stored > file_bytes - blocks[i].offset)
      return false;
  }
  return true;
}

// Whether the sections share out all blocks and need at most `most_bytes` of memory together.
bool fit(const Directory& directory, std::uint64_t file_bytes, std::uint64_t most_bytes) {
  std::uint64_t first = 0, memory = 0;
  for (const IndexSection& section : directory.sections) {
    const auto id = static_cast<Section>(section.id);
    if (section.element == 0 || section.element > kTableBlock || section.count > most_bytes / section.element) return false;
    if (as_differences(id) && section.element != sizeof(std::uint32_t)) return false;
    memory += section.count * section.element;
    const std::uint64_t per_block = values_of_block(id, section.element);
    if (memory > most_bytes || section.blocks > directory.blocks.size() - first ||
        section.blocks != (section.count + per_block - 1) / per_block)
      return false;
    if (!fit(section, std::span(directory.blocks).subspan(first, section.blocks), file_bytes)) return false;
    first += section.blocks;
  }
  return first == directory.blocks.size();
}

class Packed final : public ColumnBlocks {
 public:
  using Check = std::function<bool(const std::byte*, std::uint64_t)>;
  Packed(Stored file, std::span<const PackedBlock> blocks, std::byte* data, std::size_t element, bool differences)
      : file_(file), blocks_(blocks), data_(data), element_(element), differences_(differences), flags_(blocks.size() + 1) {
    ready_ = flags_.data();
  }
  void set_check(Check check) { check_ = std::move(check); }

  void load(std::uint64_t block) override {
    const std::lock_guard lock(busy_[block % busy_.size()]);
    if (block >= blocks_.size() || flags_[block].load(std::memory_order_relaxed) != 0) return;
    std::byte* to = data_ + block * kColumnBlock * element_;
    // Every byte was checked when the index was opened: only its owner can have changed it since.
    if (!unpack(file_, blocks_[block], differences_, to) || (check_ && !check_(to, blocks_[block].bytes / element_)))
      throw std::runtime_error("the index in the cache folder was damaged while it was in use; run the command again");
    flags_[block].store(1, std::memory_order_release);
  }

 private:
  Stored file_;
  std::span<const PackedBlock> blocks_;
  std::byte* data_;
  std::size_t element_;
  bool differences_;
  std::vector<std::atomic<std::uint8_t>> flags_;
  std::array<std::mutex, 16> busy_;
  Check check_;
};

}  // namespace

Memory::~Memory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Memory Memory::take(std::uint64_t bytes) {
  Memory out;
  if (bytes == 0) return out;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  ::madvise(data, bytes, MADV_HUGEPAGE);  // fewer page faults; without effect where it is not supported
  out.data_ = static_cast<std::byte*>(data);
  out.size_ = bytes;
  return out;
}

struct Index::Part {
  Section id{};
  std::size_t element = 0;
  std::uint64_t count = 0;
  Memory memory;
  std::unique_ptr<Packed> packed;  // a column of a file
};

struct Index::File {
  support::OwnedFd fd;
  ChecksumKey key;
  std::vector<PackedBlock> blocks;
};

Index::Index() = default;
Index::Index(Index&&) noexcept = default;
Index& Index::operator=(Index&&) noexcept = default;
Index::~Index() = default;

std::byte* Index::add(Section id, std::size_t element, std::uint64_t count) {
  parts_.push_back({id, element, count, Memory::take(count * element), nullptr});
  return parts_.back().memory.data();
}

void Index::add_bytes(Section id, std::size_t element, std::uint64_t count, const void* data) {
  std::byte* place = add(id, element, count);
  if (count > 0) std::memcpy(place, data, count * element);
}

const std::byte* Index::find(Section id, std::size_t element) const {
  const auto part = std::ranges::find(parts_, id, &Part::id);
  return part == parts_.end() || part->element != element ? nullptr : part->memory.data();
}

std::uint64_t Index::count(Section id) const {
  const auto part = std::ranges::find(parts_, id, &Part::id);
  return part == parts_.end() ? 0 : part->count;
}

ColumnBlocks* Index::unpack_later(Section id, std::function<bool(const std::byte*, std::uint64_t)> check) {
  const auto part = std::ranges::find(parts_, id, &Part::id);
  if (part == parts_.end() || !part->packed) return nullptr;
  part->packed->set_check(std::move(check));
  return part->packed.get();
}

bool Index::save(int fd, const ChecksumKey& key, const support::WideChecksum& trace, unsigned threads) const {
  struct Job {
    const Part* part;
    std::uint64_t first;  // value
  };
  std::vector<IndexSection> sections;
  std::vector<Job> jobs;
  for (const Part& part : parts_) {
    const std::uint64_t per_block = values_of_block(part.id, part.element);
    const std::uint64_t blocks = (part.count + per_block - 1) / per_block;
    sections.push_back({static_cast<std::uint32_t>(part.id), static_cast<std::uint32_t>(part.element), part.count, blocks});
    for (std::uint64_t block = 0; block < blocks; ++block) jobs.push_back({&part, block * per_block});
  }
  std::vector<PackedBlock> blocks(jobs.size());
  std::atomic<std::uint64_t> end{sizeof(IndexHeader)};
  std::atomic<bool> good{true};
  parallel(threads, jobs.size(), [&](std::size_t i, unsigned) {
    if (!good) return;
    thread_local Buffer packed;
    thread_local std::vector<std::uint32_t> differences;
    const Part& part = *jobs[i].part;
    const std::uint64_t values = std::min(part.count - jobs[i].first, values_of_block(part.id, part.element));
    const std::byte* from = part.memory.data() + jobs[i].first * part.element;
    if (as_differences(part.id)) {
      differences.resize(values);
      to_differences({reinterpret_cast<const std::uint32_t*>(from), values}, differences);
      from = reinterpret_cast<const std::byte*>(differences.data());
    }
    packed.clear();
    if (!support::compress(bytes_of(from, values * part.element), kLevel, packed)) good = false;
    blocks[i] = {end.fetch_add(packed.size()), static_cast<std::uint32_t>(packed.size()),
                 static_cast<std::uint32_t>(values * part.element), support::checksum(packed, key)};
    if (!write_all(fd, blocks[i].offset, packed)) good = false;
  });
  if (!good) return false;
  Buffer directory;
  support::put_bytes(directory, bytes_of(sections.data(), sections.size() * sizeof(IndexSection)));
  support::put_bytes(directory, bytes_of(blocks.data(), blocks.size() * sizeof(PackedBlock)));
  IndexHeader header{.magic = kIndexMagic,
                     .version = kIndexVersion,
                     .sections = static_cast<std::uint32_t>(sections.size()),
                     .trace = trace,
                     .file_bytes = end + directory.size(),
                     .directory_offset = end,
                     .blocks = blocks.size(),
                     .directory_checksum = support::checksum(directory, key)};
  header.checksum = header_checksum(header, key);
  return write_all(fd, end, directory) && write_all(fd, 0, bytes_of(&header, sizeof header));
}

Result<Index> Index::open(support::OwnedFd fd, const ChecksumKey& key, const support::WideChecksum& trace,
                          std::uint64_t most_bytes, unsigned threads) {
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) return fail("not an index");
  const auto file_bytes = static_cast<std::uint64_t>(info.st_size);
  const auto header = read_header({fd.get(), key}, trace, file_bytes);
  if (!header) return std::unexpected(header.error());
  auto directory = read_directory({fd.get(), key}, *header);
  if (!directory) return std::unexpected(directory.error());
  if (!fit(*directory, file_bytes, most_bytes)) return damaged();

  Index out;
  out.file_.reset(new File{std::move(fd), key, std::move(directory->blocks)});
  const Stored file{out.file_->fd.get(), out.file_->key};
  const std::span<const PackedBlock> blocks = out.file_->blocks;
  std::vector<std::byte*> unpack_to(blocks.size(), nullptr);  // tables are unpacked, columns only checked
  std::uint64_t first = 0;
  for (const IndexSection& section : directory->sections) {
    const auto id = static_cast<Section>(section.id);
    std::byte* const data = out.add(id, section.element, section.count);
    if (is_column(id)) {
      out.parts_.back().packed =
          std::make_unique<Packed>(file, blocks.subspan(first, section.blocks), data, section.element, as_differences(id));
    } else {
      const std::uint64_t block_bytes = values_of_block(id, section.element) * section.element;
      for (std::uint64_t i = 0; i < section.blocks; ++i) unpack_to[first + i] = data + i * block_bytes;
    }
    first += section.blocks;
  }
  std::atomic<bool> good{true};
  parallel(threads, blocks.size(), [&](std::size_t i, unsigned) {
    thread_local Buffer stored;
    if (good && !(unpack_to[i] != nullptr ? unpack(file, blocks[i], false, unpack_to[i]) : fetch(file, blocks[i], stored)))
      good = false;
  });
  if (!good) return damaged();
  return out;
}

}  // namespace vramscope::analyze
