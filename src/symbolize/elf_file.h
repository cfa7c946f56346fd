// An ELF file opened with elfutils, closed when it goes.
#pragma once

#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <string>

#include "support/result.h"

namespace vramscope::symbolize {

class ElfFile {
 public:
  static Result<ElfFile> open(const std::string& path);
  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&&) = delete;
  ~ElfFile();

  Elf* get() const { return elf_; }
  std::string build_id() const;  // hexadecimal, empty if there is none
  bool has_section(const char* name) const;

 private:
  ElfFile(int file, Elf* elf) : file_(file), elf_(elf) {}
  int file_;
  Elf* elf_;
};

}  // namespace vramscope::symbolize
