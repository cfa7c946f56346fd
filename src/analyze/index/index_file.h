// The index of a trace: everything that the store consists of, in memory and, packed, as a file.
//
// It can always be rebuilt from the trace, so it is never repaired and never trusted: a file is used only if every byte is what
// we wrote for exactly this trace, according to checksums with a key of this user, and if its contents are consistent
// (index_check.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "analyze/index/column.h"
#include "support/compress.h"
#include "support/owned_fd.h"
#include "support/result.h"

namespace vramscope::analyze {

enum class Section : std::uint32_t {
  birth = 1,
  death,
  kind,
  address,
  attributes,
  ref,
  tick,
  chunks,
  class_order,
  class_start,
  kinds,
  name_offsets,
  name_bytes,
  regions,
  marks,
  tags,
  stats,
  ooms,
  device_samples,
  host_samples,
  settings,
  lost,
  contexts,
  totals,
  omitted,
  counts,
  steps,
  tagged,
  pyramid_leaves,
  pyramid_start,
  pyramid_peak,
  place_peaks,
  cohorts,
  cohort_counts,
  step_measures,
  region_use,
  reports,
  pool_tallies,
  driver_tally,
  owner_tallies,
};

// Movable pages, zero until written. Pages that are never touched cost nothing.
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory();
  // Throws std::bad_alloc: whoever opens the trace reports it with the name of the trace.
  static Memory take(std::uint64_t bytes);
  std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }

 private:
  void swap(Memory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

// Where a block of a section lies in the file.
struct PackedBlock {
  std::uint64_t offset = 0;
  std::uint32_t stored = 0;  // bytes in the file: one zstd frame
  std::uint32_t bytes = 0;   // unpacked
  std::uint64_t checksum = 0;
};

// Whether unpacked values of a column are valid; if empty, any value is.
template <typename T>
using ColumnCheck = std::function<bool(std::span<const T>)>;

// Spans and columns live as long as the object.
class Index {
 public:
  Index();
  Index(Index&&) noexcept;
  Index& operator=(Index&&) noexcept;
  ~Index();

  // --- building
  template <typename T>
  std::span<T> add_column(Section id, std::uint64_t count) {
    return {reinterpret_cast<T*>(add(id, sizeof(T), count)), count};
  }
  template <typename T>
  void add_table(Section id, std::span<const T> rows) {
    static_assert(std::is_trivially_copyable_v<T>);
    add_bytes(id, sizeof(T), rows.size(), rows.data());
  }

  // --- using
  template <typename T>
  std::span<const T> table(Section id) const {
    const std::byte* data = find(id, sizeof(T));
    return {reinterpret_cast<const T*>(data), data == nullptr ? 0 : count(id)};
  }
  template <typename T>
  Column<T> column(Section id, const ColumnCheck<T>& check) {
    const std::byte* data = find(id, sizeof(T));
    if (data == nullptr) return {};
    std::span<const T> values(reinterpret_cast<const T*>(data), count(id));
    ColumnBlocks* blocks = unpack_later(id, [check](const std::byte* from, std::uint64_t number) {
      return !check || check(std::span<const T>(reinterpret_cast<const T*>(from), number));
    });
    return blocks == nullptr ? Column<T>(values) : Column<T>(values, blocks);
  }
  std::uint64_t count(Section id) const;  // values of a column, rows of a table

  // --- as a file
  // Reads tables and checks every byte; columns stay packed until they are used. The error is why the file cannot be used; only
  // tests read it. `most_bytes`: the most memory that the file may need.
  static Result<Index> open(support::OwnedFd file, const support::ChecksumKey& key, const support::WideChecksum& trace,
                            std::uint64_t most_bytes, unsigned threads);
  // False if the file cannot be written. Only for an index that was built.
  bool save(int fd, const support::ChecksumKey& key, const support::WideChecksum& trace, unsigned threads) const;

 private:
  struct Part;
  std::byte* add(Section id, std::size_t element, std::uint64_t count);
  void add_bytes(Section id, std::size_t element, std::uint64_t count, const void* data);
  const std::byte* find(Section id, std::size_t element) const;
  ColumnBlocks* unpack_later(Section id, std::function<bool(const std::byte*, std::uint64_t)> check);

  struct File;
  std::unique_ptr<File> file_;  // none: built, not opened
  std::vector<Part> parts_;
};

// The file's own structures, for the tool that forges indexes (tests, fuzz).
inline constexpr std::uint64_t kIndexMagic = 0x58444e494d415256;  // "VRAMINDX"
struct IndexHeader {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t sections = 0;
  support::WideChecksum trace{};
  std::uint64_t file_bytes = 0;
  std::uint64_t directory_offset = 0;  // IndexSection for each section, then PackedBlock for each block
  std::uint64_t blocks = 0;
  std::uint64_t directory_checksum = 0;
  std::uint64_t checksum = 0;  // of everything before
};
struct IndexSection {
  std::uint32_t id = 0;
  std::uint32_t element = 0;  // bytes of one value or row
  std::uint64_t count = 0;
  std::uint64_t blocks = 0;
};

}  // namespace vramscope::analyze
