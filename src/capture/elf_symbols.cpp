#include "capture/elf_symbols.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <elf.h>
#include <link.h>
#include <string.h>

#include <cstdint>
#include <initializer_list>

namespace vramscope::capture {

namespace {

struct Tables {
  const ElfW(Sym) * symbols;
  const char* names;
  const std::uint32_t* hash;  // GNU hash section
};

struct Search {
  const char* file_name;
  const char* symbol;
  void* found;
};

std::uint32_t gnu_hash(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// glibc relocates these pointers in place; other loaders leave offsets.
std::uintptr_t absolute(std::uintptr_t base, std::uintptr_t pointer) { return pointer < base ? base + pointer : pointer; }

bool read_tables(const dl_phdr_info& info, Tables& tables) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const std::uintptr_t at = absolute(info.dlpi_addr, entry->d_un.d_ptr);
      if (entry->d_tag == DT_SYMTAB) tables.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
      if (entry->d_tag == DT_STRTAB) tables.names = reinterpret_cast<const char*>(at);
      if (entry->d_tag == DT_GNU_HASH) tables.hash = reinterpret_cast<const std::uint32_t*>(at);
    }
  }
  return tables.symbols != nullptr && tables.names != nullptr && tables.hash != nullptr;
}

const ElfW(Sym) * look_up(const Tables& tables, const char* name) {
  const std::uint32_t buckets = tables.hash[0], first = tables.hash[1], bloom_words = tables.hash[2];
  const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(tables.hash + 4);
  const auto* bucket = reinterpret_cast<const std::uint32_t*>(bloom + bloom_words);
  const std::uint32_t* chain = bucket + buckets;
  const std::uint32_t hash = gnu_hash(name);
  if (buckets == 0) return nullptr;
  for (std::uint32_t index = bucket[hash % buckets]; index >= first; ++index) {
    const std::uint32_t there = chain[index - first];
    const ElfW(Sym)& symbol = tables.symbols[index];
    const bool function = symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
    if ((there | 1) == (hash | 1) && function && strcmp(tables.names + symbol.st_name, name) == 0) return &symbol;
    if ((there & 1) != 0) break;
  }
  return nullptr;
}

int visit(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const char* slash = info->dlpi_name != nullptr ? strrchr(info->dlpi_name, '/') : nullptr;
  const char* name = slash != nullptr ? slash + 1 : info->dlpi_name;
  Tables tables{};
  if (name == nullptr || strcmp(name, search->file_name) != 0 || !read_tables(*info, tables)) return 0;
  const ElfW(Sym)* symbol = look_up(tables, search->symbol);
  if (symbol == nullptr) return 0;
  search->found = reinterpret_cast<void*>(info->dlpi_addr + symbol->st_value);
  return 1;
}

}  // namespace

void* libc_function(const char* name) {
  for (const char* file_name : {"libdl.so.2", "libc.so.6"}) {
    Search search{file_name, name, nullptr};
    if (dl_iterate_phdr(visit, &search) != 0) return search.found;
  }
  return nullptr;
}

}  // namespace vramscope::capture
