#include "cli/top/spool_totals.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collect/spool/file_lock.h"
#include "collect/spool/spool_place.h"
#include "support/owned_folder.h"

namespace vramscope::cli::top {

Result<SpoolTotals> SpoolTotals::open(const std::filesystem::path& path) {
  const int fd = support::open_own_file(path, O_RDONLY);
  if (fd < 0) return fail(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  struct stat info{};
  void* mapped = MAP_FAILED;
  if (fstat(fd, &info) == 0 && info.st_size >= static_cast<off_t>(spool::kHeaderBytes))
    mapped = mmap(nullptr, spool::kHeaderBytes, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (mapped == MAP_FAILED) return fail(fmt::format("{}: not a complete spool yet", path.string()));
  SpoolTotals out(static_cast<const spool::Header*>(mapped), path);
  if (out.header().magic != spool::kMagic || out.header().version != spool::kVersion)
    return fail(fmt::format("{}: written by another version of vramscope", path.string()));
  return out;
}

SpoolTotals::SpoolTotals(SpoolTotals&& other) noexcept
    : header_(std::exchange(other.header_, nullptr)), path_(std::move(other.path_)) {}

SpoolTotals::~SpoolTotals() {
  if (header_ != nullptr) munmap(const_cast<spool::Header*>(header_), spool::kHeaderBytes);
}

std::string SpoolTotals::command() const {
  const std::size_t length = std::min<std::size_t>(header_->command_bytes, sizeof header_->command);
  std::string out(header_->command, length);
  while (!out.empty() && out.back() == '\0') out.pop_back();
  std::replace(out.begin(), out.end(), '\0', ' ');
  return out;
}

bool SpoolTotals::alive() const {
  std::filesystem::path lock = path_;
  lock.replace_extension(".lock");
  return collect::is_locked(lock);
}

std::vector<std::filesystem::path> find_spools() {
  namespace fs = std::filesystem;
  std::vector<fs::path> out;
  std::error_code error;
  for (const fs::path& place : collect::spool_candidates())
    for (auto folder = fs::directory_iterator(place, error); !error && folder != fs::directory_iterator();
         folder.increment(error)) {
      // Anyone can create a folder of that name there.
      if (!folder->path().filename().string().starts_with(collect::kSpoolPrefix) || !support::OwnedFolder::open(folder->path()))
        continue;
      std::error_code ignored;
      for (auto file = fs::directory_iterator(folder->path(), ignored); !ignored && file != fs::directory_iterator();
           file.increment(ignored))
        if (file->path().extension() == ".spool" && std::find(out.begin(), out.end(), file->path()) == out.end())
          out.push_back(file->path());
    }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace vramscope::cli::top
