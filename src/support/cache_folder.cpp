#include "support/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "support/regular_file.h"

namespace vramscope::support {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp-";
constexpr std::int64_t kStaleSeconds = 3600;  // a temporary file this old was left by a process that was killed

fs::path user_cache() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return fs::path(xdg) / "vramscope";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return fs::path(home) / ".cache" / "vramscope";
  return {};
}

bool is_ours(const struct stat& info) { return info.st_uid == ::geteuid(); }

// Folders are created only inside a folder of ours: a program that runs as root leaves nothing in another user's home.
bool make_folder(const fs::path& path) {
  if (::access(path.c_str(), F_OK) == 0) return true;
  struct stat parent{};
  if (::stat(path.parent_path().c_str(), &parent) != 0 || !S_ISDIR(parent.st_mode) || !is_ours(parent)) return false;
  return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

std::string random_name() {
  std::uint64_t bits[2] = {};
  if (::getrandom(bits, sizeof bits, 0) != sizeof bits) return {};
  char name[40];
  std::snprintf(name, sizeof name, ".tmp-%016llx%016llx", static_cast<unsigned long long>(bits[0]),
                static_cast<unsigned long long>(bits[1]));
  return name;
}

// Gives the file behind `fd` a name in the folder. Needs /proc only if the kernel requires a privilege for the direct way.
bool link_as(int fd, int folder, const std::string& name) {
  if (::linkat(fd, "", folder, name.c_str(), AT_EMPTY_PATH) == 0) return true;
  const std::string self = "/proc/self/fd/" + std::to_string(fd);
  return ::linkat(AT_FDCWD, self.c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

}  // namespace

std::optional<CacheFolder> CacheFolder::open(const fs::path& place) {
  const fs::path path = place.empty() ? user_cache() : place;
  if (path.empty() || !make_folder(path.parent_path()) || !make_folder(path)) return std::nullopt;
  OwnedFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!folder || ::fstat(folder.get(), &info) != 0 || !is_ours(info)) return std::nullopt;
  if ((info.st_mode & 077) != 0 && ::fchmod(folder.get(), 0700) != 0) return std::nullopt;
  return CacheFolder(std::move(folder));
}

OwnedFd CacheFolder::read(const std::string& name) const {
  struct stat info{};
  OwnedFd file(open_regular(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW, info));
  if (!file || !is_ours(info) || (info.st_mode & 077) != 0) return {};
  return file;
}

bool CacheFolder::publish(const std::string& name, const std::function<bool(int fd)>& write) const {
  std::string temporary = random_name();
  if (temporary.empty()) return false;
  OwnedFd file(::openat(folder_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const bool named = !file;  // a file system without O_TMPFILE
  if (named) file = OwnedFd(::openat(folder_.get(), temporary.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600));
  if (!file) return false;
  // The name must not become visible before the bytes are on disk.
  const bool written = write(file.get()) && ::fsync(file.get()) == 0 && (named || link_as(file.get(), folder_.get(), temporary));
  if (written && ::renameat(folder_.get(), temporary.c_str(), folder_.get(), name.c_str()) == 0) return true;
  if (written || named) ::unlinkat(folder_.get(), temporary.c_str(), 0);
  return false;
}

void CacheFolder::touch(int fd) { ::futimens(fd, nullptr); }

void CacheFolder::remove(const std::string& name) const { ::unlinkat(folder_.get(), name.c_str(), 0); }

void CacheFolder::trim(std::string_view suffix, std::uint64_t limit) const {
  const int again = ::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(again), ::closedir);
  if (!listing) return;
  struct Kept {
    std::string name;
    std::uint64_t bytes;
    timespec used;
  };
  std::vector<Kept> kept;
  std::uint64_t total = 0;
  const std::int64_t now = ::time(nullptr);
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    struct stat info{};
    if (::fstatat(folder_.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) continue;
    if (name.starts_with(kTemporary) && now - info.st_mtim.tv_sec > kStaleSeconds) remove(std::string(name));
    if (!name.ends_with(suffix)) continue;
    kept.push_back({std::string(name), static_cast<std::uint64_t>(info.st_size), info.st_mtim});
    total += kept.back().bytes;
  }
  std::ranges::sort(kept, [](const Kept& a, const Kept& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Kept& file : kept) {
    if (total <= limit) break;
    remove(file.name);
    total -= file.bytes;
  }
}

}  // namespace vramscope::support
