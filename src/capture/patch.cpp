#include "capture/patch.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace vramscope::capture {

namespace {

struct Place {
  void** slot;
  void* before;
};
constexpr std::size_t kPlaces = 4096;
Place g_places[kPlaces];
std::size_t g_place_count;

constexpr std::size_t kVtableSlots = 40;

// Import tables and vtables may be in pages that were made read-only after start-up. They are made read-only again.
bool is_writable(const void* address);

bool store(void** slot, void* value) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* begin = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~(page - 1));
  const bool writable = is_writable(slot);
  if (!writable && mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  if (!writable) mprotect(begin, page, PROT_READ);
  return true;
}

struct RelroQuery {
  std::uintptr_t address;
  bool read_only;
};

int look_for_relro(dl_phdr_info* info, std::size_t, void* data) {
  auto* query = static_cast<RelroQuery*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (query->address < begin || query->address >= begin + segment.p_memsz) continue;
    if (segment.p_type == PT_GNU_RELRO) query->read_only = true;
  }
  return 0;
}

bool is_writable(const void* address) {
  RelroQuery query{reinterpret_cast<std::uintptr_t>(address), false};
  dl_iterate_phdr(look_for_relro, &query);
  return !query.read_only;
}

bool replace(void** slot, void* ours) {
  if (*slot == ours || g_place_count == kPlaces) return false;
  void* before = *slot;
  if (!store(slot, ours)) return false;
  g_places[g_place_count++] = {slot, before};
  return true;
}

struct Job {
  const Replacement* replacements;
  std::size_t count;
  int places;
};

struct Imports {
  const char* strings = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const ElfW(Rela) * tables[2] = {nullptr, nullptr};
  std::size_t bytes[2] = {0, 0};
};

Imports imports_of(const dl_phdr_info& info) {
  Imports found;
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i)
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC)
      entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const auto pointer = entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_STRTAB:
        found.strings = reinterpret_cast<const char*>(pointer);
        break;
      case DT_SYMTAB:
        found.symbols = reinterpret_cast<const ElfW(Sym)*>(pointer);
        break;
      case DT_JMPREL:
        found.tables[0] = reinterpret_cast<const ElfW(Rela)*>(pointer);
        break;
      case DT_PLTRELSZ:
        found.bytes[0] = entry->d_un.d_val;
        break;
      case DT_RELA:
        found.tables[1] = reinterpret_cast<const ElfW(Rela)*>(pointer);
        break;
      case DT_RELASZ:
        found.bytes[1] = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  return found;
}

void redirect_imports(const dl_phdr_info& info, const Imports& imports, Job& job) {
  for (int t = 0; t < 2; ++t) {
    const std::size_t count = imports.tables[t] != nullptr ? imports.bytes[t] / sizeof(ElfW(Rela)) : 0;
    for (std::size_t i = 0; i < count; ++i) {
      const ElfW(Rela)& entry = imports.tables[t][i];
      const auto type = ELF64_R_TYPE(entry.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      const char* name = imports.strings + imports.symbols[ELF64_R_SYM(entry.r_info)].st_name;
      for (std::size_t r = 0; r < job.count; ++r)
        if (strcmp(name, job.replacements[r].symbol) == 0)
          job.places += replace(reinterpret_cast<void**>(info.dlpi_addr + entry.r_offset), job.replacements[r].ours) ? 1 : 0;
    }
  }
}

// The dynamic linker, the kernel's page and we ourselves stay as they are.
bool is_left_alone(const char* path) {
  return path == nullptr || strstr(path, "ld-linux") != nullptr || strstr(path, "vdso") != nullptr ||
         strstr(path, "libvramscope_inject") != nullptr;
}

int redirect_object(dl_phdr_info* info, std::size_t, void* data) {
  if (is_left_alone(info->dlpi_name)) return 0;
  const Imports imports = imports_of(*info);
  if (imports.strings != nullptr && imports.symbols != nullptr) redirect_imports(*info, imports, *static_cast<Job*>(data));
  return 0;
}

struct Range {
  std::uintptr_t least = ~std::uintptr_t{0};
  std::uintptr_t most = 0;
};

Range originals_of(const Job& job) {
  Range range;
  for (std::size_t r = 0; r < job.count; ++r) {
    const auto original = reinterpret_cast<std::uintptr_t>(job.replacements[r].original);
    if (original < range.least) range.least = original;
    if (original > range.most) range.most = original;
  }
  return range;
}

bool holds(const dl_phdr_info& info, std::uintptr_t address) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const std::uintptr_t begin = info.dlpi_addr + info.dlpi_phdr[i].p_vaddr;
    if (info.dlpi_phdr[i].p_type == PT_LOAD && address >= begin && address < begin + info.dlpi_phdr[i].p_memsz) return true;
  }
  return false;
}

// Words that are exactly the address of a function to replace. It is practically impossible that a number equals one by chance.
void redirect_words(std::uintptr_t begin, std::uintptr_t end, const Range& range, Job& job) {
  for (std::uintptr_t at = (begin + 7) & ~std::uintptr_t{7}; at + sizeof(void*) <= end; at += sizeof(void*)) {
    auto* slot = reinterpret_cast<void**>(at);
    const auto value = reinterpret_cast<std::uintptr_t>(*slot);
    if (value < range.least || value > range.most) continue;
    for (std::size_t r = 0; r < job.count; ++r)
      if (*slot == job.replacements[r].original) job.places += replace(slot, job.replacements[r].ours) ? 1 : 0;
  }
}

int redirect_data_of(dl_phdr_info* info, std::size_t, void* data) {
  auto& job = *static_cast<Job*>(data);
  const Range range = originals_of(job);
  if (is_left_alone(info->dlpi_name) || holds(*info, range.least)) return 0;  // nor the functions' own library
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0) redirect_words(begin, begin + segment.p_memsz, range, job);
  }
  return 0;
}

void redirect_vtable(void** vtable, Job& job) {
  for (std::size_t slot = 0; slot < kVtableSlots; ++slot)
    for (std::size_t r = 0; r < job.count; ++r)
      if (vtable[slot] == job.replacements[r].original && vtable[slot] != nullptr)
        job.places += replace(&vtable[slot], job.replacements[r].ours) ? 1 : 0;
}

}  // namespace

int redirect(const LoadedObject& object, const char* const* vtables, std::size_t vtable_count, const Replacement* replacements,
             std::size_t replacement_count) {
  Job job{replacements, replacement_count, 0};
  for (std::size_t v = 0; v < vtable_count; ++v)
    if (void* vtable = symbol_in(object, vtables[v])) redirect_vtable(static_cast<void**>(vtable), job);
  dl_iterate_phdr(redirect_object, &job);
  return job.places;
}

bool redirect_slot(void** slot, void* ours) { return replace(slot, ours); }

int redirect_data(const Replacement* replacements, std::size_t replacement_count) {
  Job job{replacements, replacement_count, 0};
  dl_iterate_phdr(redirect_data_of, &job);
  return job.places;
}

void restore() {
  while (g_place_count > 0) {
    --g_place_count;
    store(g_places[g_place_count].slot, g_places[g_place_count].before);
  }
}

}  // namespace vramscope::capture
