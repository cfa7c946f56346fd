#include "symbolize/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/regular_file.h"

namespace vramscope::symbolize {

namespace {

constexpr std::size_t kMostSections = 16 * 1024;  // a library has a few dozen
constexpr std::size_t kMostSegments = 1024;
constexpr std::uint64_t kLongestSectionNames = 1 << 20;  // elfutils may go through all of them for each section

// Sections lie side by side. A file in which thousands share the same bytes takes forever to read.
bool sections_are_plausible(Elf* elf, std::uint64_t file_size) {
  std::size_t sections = 0, names = 0;
  if (elf_getshdrnum(elf, &sections) != 0 || sections > kMostSections) return false;
  if (elf_getshdrstrndx(elf, &names) != 0) return false;
  std::uint64_t total = 0;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) return false;
    if (header.sh_type == SHT_NOBITS) continue;
    if (header.sh_size > file_size - total) return false;
    total += header.sh_size;
    if (elf_ndxscn(section) == names && header.sh_size > kLongestSectionNames) return false;
  }
  return true;
}

bool notes_are_plausible(Elf* elf, std::uint64_t file_size) {
  std::size_t segments = 0;
  if (elf_getphdrnum(elf, &segments) != 0 || segments > kMostSegments) return false;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < segments; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) return false;
    if (header.p_type != PT_NOTE) continue;
    if (header.p_filesz > file_size - total) return false;
    total += header.p_filesz;
  }
  return true;
}

}  // namespace

std::string hexadecimal(const void* bytes, std::size_t length) {
  std::string hex;
  for (std::size_t i = 0; i < length; ++i) hex += fmt::format("{:02x}", static_cast<const unsigned char*>(bytes)[i]);
  return hex;
}

Result<ElfFile> ElfFile::open(const std::string& path) {
  static const unsigned version = elf_version(EV_CURRENT);
  struct stat info{};
  // Libraries are often loaded through links.
  const int file = support::open_regular(AT_FDCWD, path.c_str(), O_RDONLY, info);
  if (file < 0 && errno != EINVAL && errno != EISDIR)
    return fail(fmt::format("{}: {}; its functions have no names", path, std::strerror(errno)));
  Elf* const elf = file >= 0 && version != EV_NONE ? elf_begin(file, ELF_C_READ_MMAP, nullptr) : nullptr;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  const bool is_elf = elf != nullptr && elf_kind(elf) == ELF_K_ELF;
  if (is_elf && sections_are_plausible(elf, size) && notes_are_plausible(elf, size)) return ElfFile(file, elf);
  if (elf != nullptr) elf_end(elf);
  if (file >= 0) ::close(file);
  return fail(fmt::format("{}: {}; its functions have no names", path, is_elf ? "damaged" : "not an ELF file"));
}

ElfFile::ElfFile(ElfFile&& other) noexcept : file_(std::exchange(other.file_, -1)), elf_(std::exchange(other.elf_, nullptr)) {}

ElfFile::~ElfFile() {
  if (elf_ != nullptr) elf_end(elf_);
  if (file_ >= 0) ::close(file_);
}

std::string ElfFile::build_id() const {
  const void* bytes = nullptr;
  const ssize_t length = dwelf_elf_gnu_build_id(elf_, &bytes);
  return length > 0 ? hexadecimal(bytes, static_cast<std::size_t>(length)) : std::string();
}

bool ElfFile::has_section(std::string_view name) const {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf_, &names) != 0) return false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* const text = elf_strptr(elf_, names, header.sh_name);
    if (text != nullptr && text == name) return true;
  }
  return false;
}

}  // namespace vramscope::symbolize
