// The functions of one ELF file, by address.
#pragma once

#include <libelf.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace vramscope::symbolize {

struct Symbol {
  std::string function;  // demangled; empty = not known
  std::string file;      // source file; empty = no debug information
  std::uint32_t line = 0;
};

// Names come from the symbol table, or from the table of exported symbols if the file is stripped. Lines come from debug
// information, if there is any. Not thread-safe.
class ModuleSymbols {
 public:
  // Fails if the file cannot be read, or is not the build that was recorded (`build_id` in hexadecimal, may be empty).
  static Result<ModuleSymbols> load(const std::string& path, std::string_view build_id);
  ModuleSymbols(ModuleSymbols&&) noexcept;
  ModuleSymbols& operator=(ModuleSymbols&&) noexcept;
  ~ModuleSymbols();

  // `address` is relative to the file: the recorded address minus the load address.
  Symbol find(std::uint64_t address);
  std::size_t functions() const { return functions_.size(); }

 private:
  struct Function {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t name;  // place in names_
  };
  struct Lines;  // debug information, opened on first use

  ModuleSymbols();
  // False if it has no functions.
  bool read_table(Elf* elf, std::uint32_t kind);

  std::string path_;
  std::vector<Function> functions_;
  std::string names_;  // the file's own table: NUL terminated, mangled
  std::unique_ptr<Lines> lines_;
  bool has_lines_ = false;
};

}  // namespace vramscope::symbolize
