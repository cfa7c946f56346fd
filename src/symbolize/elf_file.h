// An ELF file opened with elfutils, closed by the destructor.
#pragma once

#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "support/result.h"

namespace vramscope::symbolize {

std::string hexadecimal(const void* bytes, std::size_t length);

class ElfFile {
 public:
  // Regular files only. Rejects files whose sections overlap or are too many: reading those could take any time.
  static Result<ElfFile> open(const std::string& path);
  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&&) = delete;
  ~ElfFile();

  Elf* get() const { return elf_; }
  int descriptor() const { return file_; }
  std::string build_id() const;  // hexadecimal, empty if there is none
  bool has_section(std::string_view name) const;

 private:
  ElfFile(int file, Elf* elf) : file_(file), elf_(elf) {}
  int file_;
  Elf* elf_;
};

}  // namespace vramscope::symbolize
