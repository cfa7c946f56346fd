// The index beside a trace: sections of plain arrays in one memory-mapped file.
//
// It can always be built again from the trace, so it is never repaired and never trusted: version, size of every element,
// fingerprint of the trace and checksums must hold, else the caller builds a new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "support/result.h"

namespace vramscope::analyze {

enum class Section : std::uint32_t {
  birth = 1,
  death,
  kind,
  address,
  note,
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
  cells,
  cell_counts,
  step_measures,
  region_use,
};

// Identifies the trace that an index belongs to.
struct Fingerprint {
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;  // of its head and tail
  bool operator==(const Fingerprint&) const = default;
};
Result<Fingerprint> fingerprint(const std::filesystem::path& trace);

// A file mapping that moves with its owner.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept { swap(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Mapping();
  static Result<Mapping> map(int fd, std::uint64_t bytes, bool writable);
  static Mapping adopt(std::byte* data, std::uint64_t bytes) {
    Mapping out;
    out.data_ = data;
    out.size_ = bytes;
    return out;
  }
  std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }

 private:
  void swap(Mapping& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

struct SectionEntry {
  std::uint32_t id = 0;
  std::uint32_t element = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};

// Read side: spans into the mapping live as long as the object.
class IndexFile {
 public:
  static Result<IndexFile> open(const std::filesystem::path& path, const Fingerprint& trace);

  template <typename T>
  std::span<const T> get(Section id) const {
    static_assert(std::is_trivially_copyable_v<T>);
    auto [data, bytes] = find(id, sizeof(T));
    return {reinterpret_cast<const T*>(data), bytes / sizeof(T)};
  }
  std::uint64_t bytes() const { return mapping_.size(); }

 private:
  friend class IndexBuilder;
  std::pair<const std::byte*, std::uint64_t> find(Section id, std::size_t element) const;
  Mapping mapping_;
};

// Write side: large columns are filled in place, small sections are appended, seal() publishes the file under its name in one
// step. Without a writable folder the same bytes live in memory only.
class IndexBuilder {
 public:
  IndexBuilder(IndexBuilder&&) noexcept = default;
  IndexBuilder& operator=(IndexBuilder&&) = delete;
  ~IndexBuilder();
  // `path` empty: in memory.
  static Result<IndexBuilder> create(const std::filesystem::path& path);

  template <typename T>
  Result<std::span<T>> column(Section id, std::uint64_t count) {
    auto data = reserve(id, sizeof(T), count * sizeof(T));
    if (!data) return std::unexpected(data.error());
    return std::span<T>(reinterpret_cast<T*>(*data), count);
  }
  template <typename T>
  Status append(Section id, std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    return write(id, sizeof(T), values.data(), values.size_bytes());
  }
  Result<IndexFile> seal(const Fingerprint& trace);

 private:
  IndexBuilder() = default;
  Result<std::byte*> reserve(Section id, std::size_t element, std::uint64_t bytes);
  Status write(Section id, std::size_t element, const void* data, std::uint64_t bytes);
  struct File;
  struct Close {
    void operator()(File* file) const;
  };
  std::unique_ptr<File, Close> file_;
};

}  // namespace vramscope::analyze
