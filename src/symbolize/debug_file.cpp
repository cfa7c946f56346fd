#include "symbolize/debug_file.h"

#include <elfutils/libdwelf.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "support/owned_fd.h"
#include "support/owned_folder.h"
#include "symbolize/elf_file.h"

namespace vramscope::symbolize {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestChecked = std::uint64_t{4} << 30;  // a few seconds

bool is_regular(const fs::path& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool has_checksum(int file, GElf_Word wanted) {
  struct stat info{};
  if (fstat(file, &info) != 0 || static_cast<std::uint64_t>(info.st_size) > kLargestChecked) return false;
  std::string buffer(1 << 20, '\0');
  uLong sum = crc32(0, nullptr, 0);
  off_t done = 0;
  for (ssize_t got; (got = pread(file, buffer.data(), buffer.size(), done)) > 0; done += got)
    sum = crc32(sum, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(got));
  return done == info.st_size && sum == wanted;
}

// -1 if it is not the file that belongs to the module.
int open_matching(Dwfl_Module* module, const fs::path& path, GElf_Word checksum) {
  // Before it is opened: a device may do something then.
  if (!is_regular(path)) return -1;
  const auto elf = ElfFile::open(path.string());
  if (!elf) return -1;
  support::OwnedFd file(support::open_regular_file(path));
  if (!file) return -1;
  const unsigned char* id = nullptr;
  GElf_Addr where = 0;
  const int length = dwfl_module_build_id(module, &id, &where);
  const bool same =
      length > 0 ? elf->build_id() == hexadecimal(id, static_cast<std::size_t>(length)) : has_checksum(file.get(), checksum);
  return same ? file.release() : -1;
}

}  // namespace

int find_debug_file(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, const char* file_name, const char* link,
                    GElf_Word checksum, char** found) {
  if (const int file = dwfl_build_id_find_debuginfo(module, data, name, base, file_name, link, checksum, found); file >= 0)
    return file;
  if (link == nullptr || file_name == nullptr || *link == '\0' || std::strchr(link, '/') != nullptr) return -1;
  std::error_code error;
  const fs::path folder = fs::canonical(fs::path(file_name).parent_path(), error);
  if (error) return -1;
  for (const fs::path& place : {folder / link, folder / ".debug" / link, "/usr/lib/debug" / folder.relative_path() / link}) {
    const int file = open_matching(module, place, checksum);
    if (file < 0) continue;
    *found = strdup(place.c_str());
    return file;
  }
  return -1;
}

bool shared_part_is_regular(Dwfl_Module* module) {
  Dwarf_Addr bias = 0;
  Dwarf* const dwarf = dwfl_module_getdwarf(module, &bias);
  const char* shared = nullptr;
  const void* id = nullptr;
  if (dwarf == nullptr || dwelf_dwarf_gnu_debugaltlink(dwarf, &shared, &id) <= 0) return true;
  const char* file = nullptr;
  const char* debug_file = nullptr;
  dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &file, &debug_file);
  const char* const from = debug_file != nullptr ? debug_file : file;
  return from != nullptr && is_regular(fs::path(from).parent_path() / shared);
}

}  // namespace vramscope::symbolize
