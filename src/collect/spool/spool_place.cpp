#include "collect/spool/spool_place.h"

#include <errno.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "collect/sample/proc.h"
#include "spool/layout.h"
#include "support/units.h"

namespace vramscope::collect {

namespace {

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
constexpr std::uint64_t kLeast = std::uint64_t{8} << 20;
// The program needs the memory more than we do: without room for its own shared memory, it ends with SIGBUS. A spool takes at
// most this part of what is free, and all spools of a recording together leave half of it, or kPlenty.
constexpr std::uint64_t kShare = 4;
constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;

struct FileSystem {
  std::uint64_t magic;
  const char* name;
};
constexpr FileSystem kRefused[] = {
    {0x6969, "NFS"},       {0x517B, "SMB"},      {0xFF534D42, "CIFS"},   {0xFE534D42, "SMB2"},         {0x65735546, "FUSE"},
    {0x01021997, "9P"},    {0x00C36400, "Ceph"}, {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},         {0x19830326, "BeeGFS"},
    {0x5346414F, "AFS"},   {0x73757245, "Coda"}, {0x7461636F, "OCFS2"},  {0x01161970, "GFS2"},         {0xAAD7AAEA, "PanFS"},
    {0x20030528, "PVFS2"}, {0x564C, "NCP"},      {0x6B414653, "AFS"},    {0x65735543, "FUSE control"},
};

std::uint64_t read_number(const std::string& path) {
  const std::string text = proc::read_file(path);
  std::uint64_t value = kNoLimit;
  std::from_chars(text.data(), text.data() + text.size(), value);  // "max" leaves kNoLimit
  return value;
}

// Files in the page cache that were not read recently: they can be evicted, but count as used.
std::uint64_t idle_cache(const std::string& folder, std::string_view name) {
  std::istringstream lines(proc::read_file(folder + "/memory.stat"));
  std::uint64_t bytes = 0;
  for (std::string key; lines >> key >> bytes;)
    if (key == name) return bytes;
  return 0;
}

struct CgroupFiles {
  const char* root;
  const char* limit;
  const char* used;
  const char* idle_cache;
};
constexpr CgroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                   "total_inactive_file"};
constexpr CgroupFiles kVersion2 = {"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};

std::uint64_t room_in(const std::string& path, const CgroupFiles& files) {
  const std::string folder = files.root + path;
  const std::uint64_t limit = read_number(folder + files.limit);
  const std::uint64_t used = read_number(folder + files.used);
  if (limit == kNoLimit || used == kNoLimit || limit > (kNoLimit >> 2)) return kNoLimit;
  const std::uint64_t kept = used - std::min(used, idle_cache(folder, files.idle_cache));
  return limit > kept ? limit - kept : 0;
}

Result<SpoolPlace> try_place(std::uint64_t wanted, const std::filesystem::path& where) {
  struct statvfs info{};
  if (const std::string why = refusal(where); !why.empty()) return fail(fmt::format("{}: {}", where.string(), why));
  if (statvfs(where.c_str(), &info) != 0) return fail(fmt::format("{}: {}", where.string(), strerror(errno)));
  const std::uint64_t free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  const std::uint64_t room = where == "/dev/shm" ? std::min(free, cgroup_room()) : free;
  const std::uint64_t limit = std::min(wanted != 0 ? wanted : spool::kDefaultLimit, room / kShare);
  if (limit < std::min(kLeast, wanted != 0 ? wanted : kLeast) || (wanted != 0 && limit < wanted))
    return fail(fmt::format("{}: only {} free", where.string(), support::format_size(room)));
  auto folder = support::OwnedFolder::create(where, kSpoolPrefix);
  if (!folder) return std::unexpected(folder.error());
  return SpoolPlace{std::move(*folder), limit, free - (room - std::min(room / 2, kPlenty))};
}

}  // namespace

std::vector<std::filesystem::path> spool_candidates() {
  std::vector<std::filesystem::path> all = {"/dev/shm"};
  if (const char* chosen = getenv("TMPDIR"); chosen != nullptr && *chosen == '/') all.emplace_back(chosen);
  all.insert(all.end(), {"/var/tmp", "/tmp"});
  return all;
}

std::string refusal(const std::filesystem::path& folder) {
  struct statfs info{};
  if (statfs(folder.c_str(), &info) != 0) return strerror(errno);
  const auto magic = static_cast<std::uint64_t>(info.f_type) & 0xFFFFFFFF;
  for (const FileSystem& each : kRefused)
    if (each.magic == magic) return fmt::format("is on {}, which is not a local file system", each.name);
  if (access(folder.c_str(), W_OK | X_OK) != 0) return strerror(errno);
  struct stat place{};
  if (stat(folder.c_str(), &place) != 0) return strerror(errno);
  if ((place.st_mode & S_IWOTH) != 0 && (place.st_mode & S_ISVTX) == 0)
    return "lets any user replace other users' files (fix it with 'chmod +t')";
  return {};
}

std::uint64_t cgroup_room() {
  std::uint64_t room = kNoLimit;
  std::istringstream groups(proc::read_file("/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const std::size_t second = line.find(':', line.find(':') + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(line.find(':') + 1, second - line.find(':') - 1);
    std::string path = line.substr(second + 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers.find("memory") == std::string::npos) continue;
    // The tightest limit of the group and its ancestors; inside a container, its own group is often mounted as the root.
    for (;; path = path.substr(0, path.rfind('/'))) {
      room = std::min(room, room_in(path, v2 ? kVersion2 : kVersion1));
      if (path.empty() || path.rfind('/') == std::string::npos) break;
    }
  }
  return room;
}

Result<SpoolPlace> make_spool_folder(std::uint64_t wanted, const std::vector<std::filesystem::path>& candidates) {
  std::string reasons;
  for (const auto& where : candidates) {
    auto place = try_place(wanted, where);
    if (place) return place;
    reasons += (reasons.empty() ? "" : "; ") + place.error().message;
  }
  return fail(fmt::format("no place for the spool ({}); set TMPDIR to a folder on a local disk", reasons));
}

}  // namespace vramscope::collect
