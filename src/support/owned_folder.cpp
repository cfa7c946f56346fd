#include "support/owned_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "support/regular_file.h"

namespace vramscope::support {

namespace {

std::unexpected<Error> io_error(const std::filesystem::path& path, const char* what) {
  const int reason = errno;
  return fail(path.string() + ": " + what + ": " + strerror(reason));
}

// A second name may belong to any other file of the user: archives can contain hard links.
bool is_our_file(const struct stat& info) { return S_ISREG(info.st_mode) && info.st_uid == geteuid() && info.st_nlink <= 1; }

}  // namespace

std::string random_name() {
  constexpr std::string_view kLetters = "abcdefghijkmnpqrstuvwxyz23456789";  // 32, none like another
  std::array<unsigned char, 13> bytes{};
  for (std::size_t got = 0; got < bytes.size();) {
    const ssize_t more = getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (more > 0) got += static_cast<std::size_t>(more);
  }
  std::string name;
  for (const unsigned char byte : bytes) name += kLetters[byte % kLetters.size()];
  return name;
}

int open_own_file(const std::filesystem::path& path, int flags) {
  struct stat info{};
  const int file = open_regular(AT_FDCWD, path.c_str(), flags | O_NOFOLLOW, info);
  if (file < 0 || is_our_file(info)) return file;
  close(file);
  errno = EPERM;
  return -1;
}

int open_regular_file(const std::filesystem::path& path) {
  struct stat info{};
  return open_regular(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW, info);
}

int open_regular_file(int folder, const std::string& name) {
  struct stat info{};
  return open_regular(folder, name.c_str(), O_RDONLY | O_NOFOLLOW, info);
}

int open_real_folder(const std::filesystem::path& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = again >= 0 ? fdopendir(again) : nullptr;
  if (listing == nullptr) {
    if (again >= 0) close(again);
    return names;
  }
  while (const dirent* entry = readdir(listing)) names.emplace_back(entry->d_name);
  closedir(listing);
  return names;
}

Result<OwnedFolder> OwnedFolder::create(const std::filesystem::path& where, std::string_view prefix, unsigned mode) {
  const std::filesystem::path path = where / (std::string(prefix) + random_name());
  if (mkdir(path.c_str(), mode) != 0) return io_error(path, "cannot create the folder");
  OwnedFolder made(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), path);
  struct stat info{};
  if (made.folder_ < 0 || fstat(made.folder_, &info) != 0) {
    auto error = io_error(path, "cannot open the new folder");
    rmdir(path.c_str());
    return error;
  }
  if (info.st_uid != geteuid()) return fail(path.string() + ": belongs to another user although it was just created");
  const int marker = openat(made.folder_, kMarker, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (marker < 0) {
    auto error = io_error(path, "cannot write");
    rmdir(path.c_str());
    return error;
  }
  close(marker);
  return made;
}

Result<OwnedFolder> OwnedFolder::create_temporary(std::string_view prefix) {
  std::error_code error;
  const std::filesystem::path where = std::filesystem::temp_directory_path(error);
  if (error) {
    const char* chosen = getenv("TMPDIR");
    return fail(fmt::format("{}: cannot be used for temporary files: {}; set TMPDIR to a folder that you can write to",
                            chosen != nullptr ? chosen : "/tmp", error.message()));
  }
  return create(where, prefix);
}

Result<OwnedFolder> OwnedFolder::open(const std::filesystem::path& path) {
  OwnedFolder found(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), path);
  struct stat info{};
  if (found.folder_ < 0 || fstat(found.folder_, &info) != 0) return io_error(path, "cannot open");
  if (info.st_uid != geteuid()) return fail(path.string() + ": belongs to another user; ask that user to run this");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return fail(path.string() + ": other users can write to it");
  if (fstatat(found.folder_, kMarker, &info, AT_SYMLINK_NOFOLLOW) != 0 || !is_our_file(info))
    return fail(path.string() + ": vramscope did not create this folder");
  return found;
}

OwnedFolder::OwnedFolder(OwnedFolder&& other) noexcept
    : folder_(std::exchange(other.folder_, -1)), path_(std::move(other.path_)) {}

OwnedFolder& OwnedFolder::operator=(OwnedFolder&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(path_, other.path_);
  return *this;
}

OwnedFolder::~OwnedFolder() {
  if (folder_ >= 0) close(folder_);
}

void OwnedFolder::remove_files(const IsOurs& is_ours) const {
  for (const std::string& name : names_in(folder_)) {
    struct stat info{};
    if (!is_ours(name) || fstatat(folder_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (info.st_uid == geteuid() && (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode))) unlinkat(folder_, name.c_str(), 0);
  }
}

bool OwnedFolder::remove(const IsOurs& is_ours) const {
  remove_files(is_ours);
  // The marker goes last: a folder that keeps something stays recognizable.
  for (const std::string& name : names_in(folder_))
    if (name != "." && name != ".." && name != kMarker) return false;
  unlinkat(folder_, kMarker, 0);
  // The name may point elsewhere by now. rmdir follows no link and removes only an empty folder.
  struct stat held{};
  struct stat named{};
  if (fstat(folder_, &held) != 0 || lstat(path_.c_str(), &named) != 0) return false;
  return held.st_dev == named.st_dev && held.st_ino == named.st_ino && rmdir(path_.c_str()) == 0;
}

void remove_own_link(const std::filesystem::path& link) {
  struct stat info{};
  if (lstat(link.c_str(), &info) == 0 && S_ISLNK(info.st_mode) && info.st_uid == geteuid()) unlink(link.c_str());
}

}  // namespace vramscope::support
