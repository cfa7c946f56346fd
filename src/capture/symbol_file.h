// The symbols in the file of a loaded library that the loader does not map: those of functions that it does not export.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace vramscope::capture {

// Reads the file piece by piece, so that nothing is mapped and a damaged file is only a failed read. One at a time in a process:
// the piece is a static buffer.
class SymbolFile {
 public:
  explicit SymbolFile(const char* path);
  ~SymbolFile();
  SymbolFile(const SymbolFile&) = delete;
  SymbolFile& operator=(const SymbolFile&) = delete;

  bool has_symbols() const { return symbol_count_ != 0; }

  // Calls visit(symbol) for each symbol until it returns false.
  template <typename Visit>
  void each(Visit visit) const {
    for (std::uint64_t first = 0; first < symbol_count_;) {
      std::size_t count = 0;
      const Elf64_Sym* symbols = piece(first, count);
      if (symbols == nullptr || count == 0) return;
      for (std::size_t i = 0; i < count; ++i)
        if (!visit(symbols[i])) return;
      first += count;
    }
  }

  // Whether this is the symbol's name. Names longer than 127 characters are never equal.
  bool is_called(const Elf64_Sym& symbol, const char* name) const;

 private:
  const Elf64_Sym* piece(std::uint64_t first, std::size_t& count) const;
  bool read(std::uint64_t offset, void* to, std::size_t bytes) const;

  int file_ = -1;
  std::uint64_t symbols_at_ = 0, symbol_count_ = 0;
  std::uint64_t names_at_ = 0, name_bytes_ = 0;
};

}  // namespace vramscope::capture
