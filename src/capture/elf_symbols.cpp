#include "capture/elf_symbols.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include <cstdint>
#include <initializer_list>

namespace vramscope::capture {

namespace {

struct Tables {
  const ElfW(Sym) * symbols;
  const char* names;
  const std::uint32_t* hash;      // GNU hash section; NULL: it has the older one
  const std::uint32_t* old_hash;  // of System V
};

std::uint32_t old_hash(const char* name) {
  std::uint32_t hash = 0;
  for (; *name != '\0'; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    const std::uint32_t high = hash & 0xf0000000;
    hash = (hash ^ high >> 24) & ~high;
  }
  return hash;
}

std::uint32_t gnu_hash(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// glibc relocates these pointers in place; other loaders leave offsets.
std::uintptr_t absolute(std::uintptr_t base, std::uintptr_t pointer) { return pointer < base ? base + pointer : pointer; }

bool read_tables(const LoadedObject& object, Tables& tables) {
  for (const auto* entry = static_cast<const ElfW(Dyn)*>(object.dynamic); entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const std::uintptr_t at = absolute(object.base, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) tables.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
    if (entry->d_tag == DT_STRTAB) tables.names = reinterpret_cast<const char*>(at);
    if (entry->d_tag == DT_HASH) tables.old_hash = reinterpret_cast<const std::uint32_t*>(at);
    if (entry->d_tag == DT_GNU_HASH) tables.hash = reinterpret_cast<const std::uint32_t*>(at);
  }
  return tables.symbols != nullptr && tables.names != nullptr && (tables.hash != nullptr || tables.old_hash != nullptr);
}

bool is_called(const Tables& tables, const ElfW(Sym) & symbol, const char* name) {
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_OBJECT) &&
         strcmp(tables.names + symbol.st_name, name) == 0;
}

const ElfW(Sym) * look_up_old(const Tables& tables, const char* name) {
  const std::uint32_t buckets = tables.old_hash[0];
  const std::uint32_t* bucket = tables.old_hash + 2;
  const std::uint32_t* chain = bucket + buckets;
  if (buckets == 0) return nullptr;
  for (std::uint32_t index = bucket[old_hash(name) % buckets]; index != STN_UNDEF; index = chain[index])
    if (is_called(tables, tables.symbols[index], name)) return &tables.symbols[index];
  return nullptr;
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
    if ((there | 1) == (hash | 1) && is_called(tables, symbol, name)) return &symbol;
    if ((there & 1) != 0) break;
  }
  return nullptr;
}

const ElfW(Dyn) * dynamic_section(std::uintptr_t base, const ElfW(Phdr) * segments, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (segments[i].p_type == PT_DYNAMIC) return reinterpret_cast<const ElfW(Dyn)*>(base + segments[i].p_vaddr);
  return nullptr;
}

// The list that the dynamic linker keeps for debuggers, found through the program's own headers. NULL for a program without
// DT_DEBUG.
const link_map* loaded_objects() {
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const std::size_t count = getauxval(AT_PHNUM);
  std::uintptr_t base = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (segments[i].p_type == PT_PHDR) base = reinterpret_cast<std::uintptr_t>(segments) - segments[i].p_vaddr;
  for (const auto* entry = dynamic_section(base, segments, count); entry != nullptr && entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr != 0) return reinterpret_cast<const r_debug*>(entry->d_un.d_ptr)->r_map;
  return nullptr;
}

struct Search {
  const char* file_name;  // NULL: any object but ourselves
  const char* symbol;
  void* found;
};

const char* file_name_of(const char* path) {
  const char* slash = path != nullptr ? strrchr(path, '/') : nullptr;
  return slash != nullptr ? slash + 1 : path;
}

bool visit(const LoadedObject& object, Search& search) {
  const char* name = file_name_of(object.path);
  const bool wanted =
      search.file_name == nullptr ? object.dynamic != _DYNAMIC : name != nullptr && strcmp(name, search.file_name) == 0;
  if (wanted) search.found = symbol_in(object, search.symbol);
  return search.found != nullptr;
}

LoadedObject object_of(const dl_phdr_info& info) {
  return {info.dlpi_name, info.dlpi_addr, dynamic_section(info.dlpi_addr, info.dlpi_phdr, info.dlpi_phnum)};
}

int visit_info(dl_phdr_info* info, std::size_t, void* data) {
  return visit(object_of(*info), *static_cast<Search*>(data)) ? 1 : 0;
}

int visit_name(dl_phdr_info* info, std::size_t, void* data) {
  auto& wanted = *static_cast<LoadedObject*>(data);  // its path is the start of a file name
  const char* name = file_name_of(info->dlpi_name);
  if (name == nullptr || strncmp(name, wanted.path, strlen(wanted.path)) != 0) return 0;
  wanted = object_of(*info);
  return 1;
}

struct AddressSearch {
  std::uintptr_t address;
  LoadedObject object;
};

int visit_address(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<AddressSearch*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search.address < begin || search.address >= begin + segment.p_memsz) continue;
    search.object = object_of(*info);
    return 1;
  }
  return 0;
}

// Avoids dl_iterate_phdr if possible: sanitizers replace it and first look up the real one with our dlsym. Without its lock:
// for lookups before main.
void search_objects(Search& search) {
  const link_map* first = loaded_objects();
  for (const link_map* map = first; map != nullptr && search.found == nullptr; map = map->l_next)
    visit({map->l_name, map->l_addr, map->l_ld}, search);
  if (first == nullptr) dl_iterate_phdr(visit_info, &search);
}

// With the C library's own dl_iterate_phdr, and so its lock: a sanitizer's may not work yet.
void each_object(int (*visitor)(dl_phdr_info*, std::size_t, void*), void* data) {
  using Iterate = int (*)(int (*)(dl_phdr_info*, std::size_t, void*), void*);
  void* const own = libc_function("dl_iterate_phdr");
  const auto iterate = own != nullptr ? reinterpret_cast<Iterate>(own) : &dl_iterate_phdr;
  iterate(visitor, data);
}

}  // namespace

void* libc_function(const char* name) {
  // The last one is for C libraries other than glibc, which use another name.
  for (const char* file_name : {"libdl.so.2", "libc.so.6", static_cast<const char*>(nullptr)}) {
    Search search{file_name, name, nullptr};
    search_objects(search);
    if (search.found != nullptr) return search.found;
  }
  return nullptr;
}

LoadedObject loaded_object(const char* file_name) {
  LoadedObject object{file_name, 0, nullptr};
  each_object(visit_name, &object);
  return object;
}

LoadedObject object_with(const void* address) {
  AddressSearch search{reinterpret_cast<std::uintptr_t>(address), {nullptr, 0, nullptr}};
  each_object(visit_address, &search);
  return search.object;
}

void* symbol_in(const LoadedObject& object, const char* name) {
  Tables tables{};
  if (!read_tables(object, tables)) return nullptr;
  const ElfW(Sym)* symbol = tables.hash != nullptr ? look_up(tables, name) : look_up_old(tables, name);
  return symbol != nullptr ? reinterpret_cast<void*>(object.base + symbol->st_value) : nullptr;
}

void* symbol_in_any(const char* name) {
  Search search{nullptr, name, nullptr};
  each_object(visit_info, &search);
  return search.found;
}

}  // namespace vramscope::capture
