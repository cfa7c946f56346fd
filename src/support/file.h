// Files that are only appended to, and files that are read at any position. Both report errors as one sentence with the path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "support/bytes.h"
#include "support/result.h"

namespace vramscope::support {

// The error for a standard output that takes no more.
std::unexpected<Error> output_error(int reason);

// Where a writer's bytes go. Tests use a disk that is full or writes short.
class Sink {
 public:
  virtual ~Sink() = default;
  // All or nothing as far as a reader can tell: after an error, the sink contains what it contained before, or the start of
  // `bytes` if even that could not be undone.
  virtual Status append(ByteSpan bytes) = 0;
  virtual std::uint64_t size() const = 0;
  // From now on, each append leaves this many bytes free for what has to be written at the end: on a full disk, an append fails
  // while there is still room for that. 0: the room may be used.
  virtual void keep_free(std::uint64_t bytes) { (void)bytes; }
};

class AppendFile final : public Sink {
 public:
  // Fails if `path` already exists.
  static Result<std::unique_ptr<AppendFile>> create(const std::filesystem::path& path);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile() override;

  Status append(ByteSpan bytes) override;
  std::uint64_t size() const override { return size_; }
  void keep_free(std::uint64_t bytes) override { kept_free_ = bytes; }
  // Waits until the bytes are on disk.
  Status sync();
  // Replaces what is at `path` atomically.
  Status rename(const std::filesystem::path& path);

 private:
  AppendFile(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}
  int problem_before(std::uint64_t bytes);

  int fd_;
  std::filesystem::path path_;
  std::uint64_t size_ = 0;
  std::uint64_t kept_free_ = 0;
  bool reserved_ = false;  // there may be space behind the end
};

// Writes the whole file under a temporary name and then moves it to `path` atomically: readers see the old file or the new one,
// and a link at `path` is replaced, not followed.
Status replace_file(const std::filesystem::path& path, std::string_view text);

// Reads by position, without a mapping: a file that shrinks under a mapping kills its reader.
class ReadFile {
 public:
  static Result<ReadFile> open(const std::filesystem::path& path);
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&& other) noexcept;
  ~ReadFile();

  std::uint64_t size() const { return size_; }  // when it was opened
  const std::filesystem::path& path() const { return path_; }
  // Bytes that are stored; the rest are holes, which cost their author nothing. The size if the file system does not tell.
  std::uint64_t stored() const;
  // The first stretch at or after `from` that is not a hole; empty, at the end, if there is none.
  struct Stretch {
    std::uint64_t begin = 0, end = 0;
  };
  Stretch next_data(std::uint64_t from) const;
  // Fills `into`; a file that ends earlier is an error.
  Status read(std::uint64_t offset, std::span<std::uint8_t> into) const;

 private:
  ReadFile(int fd, std::uint64_t size, std::filesystem::path path) : fd_(fd), size_(size), path_(std::move(path)) {}

  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::filesystem::path path_;
};

}  // namespace vramscope::support
