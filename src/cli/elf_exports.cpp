#include "cli/elf_exports.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <vector>

namespace vramscope::cli {

namespace {

class ElfFile {
 public:
  explicit ElfFile(const std::filesystem::path& path) : file_(path, std::ios::binary) {
    file_.seekg(0, std::ios::end);
    size_ = file_ ? static_cast<std::uint64_t>(file_.tellg()) : 0;
  }

  // False: the file is shorter than its headers claim.
  bool read(std::uint64_t offset, void* out, std::uint64_t bytes) {
    if (offset > size_ || bytes > size_ - offset) return false;
    file_.seekg(static_cast<std::streamoff>(offset));
    file_.read(static_cast<char*>(out), static_cast<std::streamsize>(bytes));
    return static_cast<bool>(file_);
  }
  template <typename T>
  bool read_all(std::uint64_t offset, std::uint64_t bytes, std::vector<T>& out) {
    if (offset > size_ || bytes > size_ - offset) return false;
    out.resize(bytes / sizeof(T));
    return read(offset, out.data(), out.size() * sizeof(T));
  }

 private:
  std::ifstream file_;
  std::uint64_t size_ = 0;
};

}  // namespace

Result<std::set<std::string>> elf_exports(const std::filesystem::path& library) {
  const auto bad = [&](const char* why) { return fail(fmt::format("{}: {}", library.string(), why)); };
  ElfFile file(library);
  Elf64_Ehdr head{};
  if (!file.read(0, &head, sizeof head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64)
    return bad("not a 64-bit ELF file");
  std::vector<Elf64_Shdr> sections;
  if (head.e_shentsize != sizeof(Elf64_Shdr) ||
      !file.read_all(head.e_shoff, std::uint64_t{head.e_shnum} * sizeof(Elf64_Shdr), sections))
    return bad("has no section table");
  std::set<std::string> names;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    std::vector<Elf64_Sym> symbols;
    std::vector<char> texts;
    const Elf64_Shdr& strings = sections[section.sh_link];
    if (!file.read_all(section.sh_offset, section.sh_size, symbols) || !file.read_all(strings.sh_offset, strings.sh_size, texts))
      return bad("is truncated");
    texts.push_back('\0');
    for (const Elf64_Sym& symbol : symbols)
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < texts.size()) names.emplace(texts.data() + symbol.st_name);
  }
  return names;
}

}  // namespace vramscope::cli
