#include "support/fresh_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/owned_folder.h"

namespace vramscope::support {

// Not every file system can rename without replacing; every one that cannot has hard links.
bool rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  return link(from.c_str(), to.c_str()) == 0 && unlink(from.c_str()) == 0;
}

std::unexpected<Error> exists_already(const std::filesystem::path& path) {
  return fail(path.string() + ": exists already; remove it, or choose another output file");
}

std::unexpected<Error> cannot_create(const std::filesystem::path& path, std::string_view why) {
  const std::string because = why.empty() ? "" : ": " + std::string(why);
  return fail(path.string() + ": cannot create the file" + because + "; choose another output file");
}

Result<FreshFile> FreshFile::create(const std::filesystem::path& path) {
  struct stat info{};
  if (lstat(path.c_str(), &info) == 0) return exists_already(path);  // before hours of work; keep() is what decides
  std::filesystem::path temporary = path.parent_path() / ("." + path.filename().string() + "." + random_name());
  auto file = AppendFile::create(temporary);
  if (!file) return cannot_create(path, std::strerror(errno));
  return FreshFile(std::move(*file), std::move(temporary), path);
}

FreshFile::~FreshFile() {
  if (file_) unlink(temporary_.c_str());
}

Status FreshFile::keep() {
  if (Status status = file_->sync(); !status) return status;
  if (!rename_to_new(temporary_, path_)) {
    if (errno == EEXIST) return exists_already(path_);
    return cannot_create(path_, std::strerror(errno));
  }
  file_.reset();
  return {};
}

}  // namespace vramscope::support
