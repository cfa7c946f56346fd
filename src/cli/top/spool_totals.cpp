#include "cli/top/spool_totals.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collect/spool_place.h"

namespace vramscope::cli::top {

Result<SpoolTotals> SpoolTotals::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  struct stat info{};
  void* mapped = MAP_FAILED;
  if (fstat(fd, &info) == 0 && info.st_size >= static_cast<off_t>(spool::kHeaderBytes))
    mapped = mmap(nullptr, spool::kHeaderBytes, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (mapped == MAP_FAILED) return fail(fmt::format("{} is no spool yet", path.string()));
  SpoolTotals out(static_cast<const spool::Header*>(mapped), path);
  if (out.header().magic != spool::kMagic || out.header().version != spool::kVersion)
    return fail(fmt::format("{} is of another version", path.string()));
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
  const int fd = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  struct flock query{};
  query.l_type = F_WRLCK;
  query.l_whence = SEEK_SET;
  const bool known = fcntl(fd, F_GETLK, &query) == 0;
  ::close(fd);
  return known && query.l_type != F_UNLCK;
}

std::vector<std::filesystem::path> find_spools() {
  namespace fs = std::filesystem;
  std::vector<fs::path> out;
  std::error_code error;
  for (const fs::path& place : collect::spool_candidates())
    for (const auto& folder : fs::directory_iterator(place, error)) {
      if (!folder.path().filename().string().starts_with("vramscope-")) continue;
      std::error_code ignored;
      for (const auto& file : fs::directory_iterator(folder.path(), ignored))
        if (file.path().extension() == ".spool" && std::find(out.begin(), out.end(), file.path()) == out.end())
          out.push_back(file.path());
    }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace vramscope::cli::top
