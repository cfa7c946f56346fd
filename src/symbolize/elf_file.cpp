#include "symbolize/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace vramscope::symbolize {

Result<ElfFile> ElfFile::open(const std::string& path) {
  static const unsigned version = elf_version(EV_CURRENT);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(fmt::format("{}: {}; its functions stay without names", path, std::strerror(errno)));
  Elf* const elf = version != EV_NONE ? elf_begin(file, ELF_C_READ_MMAP, nullptr) : nullptr;
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF) {
    if (elf != nullptr) elf_end(elf);
    ::close(file);
    return fail(fmt::format("{}: not an ELF file; its functions stay without names", path));
  }
  return ElfFile(file, elf);
}

ElfFile::ElfFile(ElfFile&& other) noexcept : file_(std::exchange(other.file_, -1)), elf_(std::exchange(other.elf_, nullptr)) {}

ElfFile::~ElfFile() {
  if (elf_ != nullptr) elf_end(elf_);
  if (file_ >= 0) ::close(file_);
}

std::string ElfFile::build_id() const {
  const void* bytes = nullptr;
  const ssize_t length = dwelf_elf_gnu_build_id(elf_, &bytes);
  std::string hex;
  for (ssize_t i = 0; i < length; ++i) hex += fmt::format("{:02x}", static_cast<const unsigned char*>(bytes)[i]);
  return hex;
}

bool ElfFile::has_section(const char* name) const {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf_, &names) != 0) return false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* const text = elf_strptr(elf_, names, header.sh_name);
    if (text != nullptr && std::strcmp(text, name) == 0) return true;
  }
  return false;
}

}  // namespace vramscope::symbolize
