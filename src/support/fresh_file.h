// A file that appears complete or not at all, and never in place of another one.
#pragma once

#include <filesystem>
#include <memory>

#include "support/file.h"

namespace vramscope::support {

// Renames without replacing what is at `to`. False: errno says why; EEXIST if something is there.
bool rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to);

// Written under a temporary name next to its place, which it takes with keep(). Without that, it is removed.
class FreshFile final : public Sink {
 public:
  // Fails if something, even a link to nothing, is at `path`.
  static Result<FreshFile> create(const std::filesystem::path& path);
  FreshFile(FreshFile&&) = default;
  FreshFile& operator=(FreshFile&&) = delete;
  ~FreshFile() override;

  Status append(ByteSpan bytes) override { return file_->append(bytes); }
  std::uint64_t size() const override { return file_->size(); }
  Status keep();

 private:
  FreshFile(std::unique_ptr<AppendFile> file, std::filesystem::path temporary, std::filesystem::path path)
      : file_(std::move(file)), temporary_(std::move(temporary)), path_(std::move(path)) {}

  std::unique_ptr<AppendFile> file_;  // null: kept, or moved from
  std::filesystem::path temporary_, path_;
};

// The error for an output that is already there.
std::unexpected<Error> exists_already(const std::filesystem::path& path);
// `why` may be empty.
std::unexpected<Error> cannot_create(const std::filesystem::path& path, std::string_view why);

}  // namespace vramscope::support
