// Files that are written at the end only, and files that are read at any place. Both report errors as one sentence with the path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "support/bytes.h"
#include "support/result.h"

namespace vramscope::support {

// Where a writer's bytes go. Tests put a disk behind it that is full or writes short.
class Sink {
 public:
  virtual ~Sink() = default;
  // All or nothing as far as the reader can tell: after an error the sink holds what it held before, or the start of `bytes`
  // where even that could not be taken back.
  virtual Status append(ByteSpan bytes) = 0;
  virtual std::uint64_t size() const = 0;
  // From now on so many bytes stay free behind each append, for what has to be written at the end: on a full disk an append fails
  // while there is still room for that. 0: the room may be used.
  virtual void keep_free(std::uint64_t bytes) { (void)bytes; }
};

class AppendFile final : public Sink {
 public:
  // Fails if there is something at `path` already.
  static Result<std::unique_ptr<AppendFile>> create(const std::filesystem::path& path);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile() override;

  Status append(ByteSpan bytes) override;
  std::uint64_t size() const override { return size_; }
  void keep_free(std::uint64_t bytes) override { kept_free_ = bytes; }
  // Waits until the bytes are on the disk.
  Status sync();
  // Takes the place of what is at `path`, in one step.
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

// Reads by position, without a mapping: a file that shrinks under a mapping kills its reader.
class ReadFile {
 public:
  static Result<ReadFile> open(const std::filesystem::path& path);
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&& other) noexcept;
  ~ReadFile();

  std::uint64_t size() const { return size_; }  // when it was opened
  const std::filesystem::path& path() const { return path_; }
  // Fills `into`; a file that ends before is an error.
  Status read(std::uint64_t offset, std::span<std::uint8_t> into) const;

 private:
  ReadFile(int fd, std::uint64_t size, std::filesystem::path path) : fd_(fd), size_(size), path_(std::move(path)) {}

  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::filesystem::path path_;
};

}  // namespace vramscope::support
