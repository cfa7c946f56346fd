#include "capture/symbol_file.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

namespace vramscope::capture {

namespace {

constexpr std::size_t kPiece = 2048;
Elf64_Sym g_piece[kPiece];

}  // namespace

SymbolFile::SymbolFile(const char* path) : file_(path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1) {
  Elf64_Ehdr header;
  if (!read(0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) return;
  const auto section = [&](std::uint64_t index, Elf64_Shdr& out) {
    return index < header.e_shnum && read(header.e_shoff + index * sizeof out, &out, sizeof out);
  };
  Elf64_Shdr symbols, names;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    if (!section(i, symbols)) return;
    if (symbols.sh_type != SHT_SYMTAB || symbols.sh_entsize != sizeof(Elf64_Sym) || !section(symbols.sh_link, names)) continue;
    symbols_at_ = symbols.sh_offset;
    names_at_ = names.sh_offset;
    name_bytes_ = names.sh_size;
    symbol_count_ = symbols.sh_size / sizeof(Elf64_Sym);
    return;
  }
}

SymbolFile::~SymbolFile() {
  if (file_ >= 0) close(file_);
}

bool SymbolFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  return file_ >= 0 && pread(file_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

const Elf64_Sym* SymbolFile::piece(std::uint64_t first, std::size_t& count) const {
  count = symbol_count_ - first < kPiece ? static_cast<std::size_t>(symbol_count_ - first) : kPiece;
  return read(symbols_at_ + first * sizeof(Elf64_Sym), g_piece, count * sizeof(Elf64_Sym)) ? g_piece : nullptr;
}

bool SymbolFile::is_called(const Elf64_Sym& symbol, const char* name) const {
  char text[128];
  const std::size_t bytes = strlen(name) + 1;
  return bytes <= sizeof text && symbol.st_name + bytes <= name_bytes_ && read(names_at_ + symbol.st_name, text, bytes) &&
         memcmp(text, name, bytes) == 0;
}

}  // namespace vramscope::capture
