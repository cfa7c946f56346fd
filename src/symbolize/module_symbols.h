// The functions of one ELF file, by address.
#pragma once

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

// Names come from the symbol table, or from the table of exported symbols where the file was stripped; lines from debug
// information where there is some. Not for use by several threads at once.
class ModuleSymbols {
 public:
  // Fails where the file cannot be read, or is another build than the one recorded (`build_id` in hexadecimal, may be empty).
  static Result<ModuleSymbols> load(const std::string& path, std::string_view build_id);
  ModuleSymbols(ModuleSymbols&&) noexcept;
  ModuleSymbols& operator=(ModuleSymbols&&) noexcept;
  ~ModuleSymbols();

  // `address` as in the file: what was recorded less where the file was loaded.
  Symbol find(std::uint64_t address);
  std::size_t functions() const { return functions_.size(); }

 private:
  struct Function {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t name;  // place in names_
  };
  struct Lines;  // debug information, opened when first asked for

  ModuleSymbols();

  std::string path_;
  std::vector<Function> functions_;
  std::string names_;  // NUL terminated, mangled
  std::unique_ptr<Lines> lines_;
  bool has_lines_ = false;
};

}  // namespace vramscope::symbolize
