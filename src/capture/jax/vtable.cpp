#include "capture/jax/vtable.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <link.h>
#include <string.h>

#include <iterator>

#include "capture/loader.h"
#include "capture/symbol_file.h"

namespace vramscope::capture::jax {

namespace {

constexpr std::size_t kMethods = static_cast<std::size_t>(Method::kCount);
constexpr std::size_t kFewestFunctions = 12, kMostFunctions = 40;
constexpr std::size_t kBeforeFunctions = 2;  // words of a vtable before its first function: offset to the top, type information

constexpr const char* kClass = "_ZTVN3tsl12BFCAllocatorE";
constexpr char kTypeName[] = "N3tsl12BFCAllocatorE";

// In the order of Method.
constexpr const char* kSymbols[] = {
    "_ZN3tsl12BFCAllocatorD1Ev",
    "_ZN3tsl12BFCAllocatorD0Ev",
    "_ZN3tsl12BFCAllocator4NameB5cxx11Ev",
    "_ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE",
    "_ZN3tsl12BFCAllocator13DeallocateRawEPv",
    "_ZNK3tsl12BFCAllocator13AllocatedSizeEPKv",
    "_ZN3tsl12BFCAllocator8GetStatsEv",
    "_ZNK3tsl12BFCAllocator13GetMemoryTypeEv",
};
static_assert(std::size(kSymbols) == kMethods);

// Where the functions are if there are no symbols, by the number of functions; in the order of Method.
struct Layout {
  std::size_t functions;
  std::uint8_t places[kMethods];
};
constexpr Layout kLayouts[] = {
    {17, {0, 1, 2, 4, 5, 9, 12, 16}},   // 0.4.30
    {18, {0, 1, 2, 4, 5, 10, 13, 17}},  // 0.4.38 to 0.10
    {21, {0, 1, 2, 4, 7, 13, 16, 20}},  // 0.11 and 0.12
};

bool is_complete(const Vtable& vtable) {
  return vtable.slot(Method::allocate) != nullptr && vtable.slot(Method::deallocate) != nullptr &&
         vtable.slot(Method::allocated_size) != nullptr;
}

std::uintptr_t word_at(std::uintptr_t address) { return *reinterpret_cast<const std::uintptr_t*>(address); }

Vtable find_by_symbols(const LoadedObject& plugin) {
  const SymbolFile file(plugin.path);
  Elf64_Sym table{};
  file.each([&](const Elf64_Sym& symbol) {
    const std::uint64_t functions = symbol.st_size / sizeof(void*) - kBeforeFunctions;
    const bool plausible =
        ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && functions >= kFewestFunctions && functions <= kMostFunctions;
    if (plausible && file.is_called(symbol, kClass)) table = symbol;
    return table.st_value == 0;
  });
  Vtable found;
  if (table.st_value == 0) return found;
  auto** const functions = reinterpret_cast<void**>(plugin.base + table.st_value) + kBeforeFunctions;
  const std::size_t count = table.st_size / sizeof(void*) - kBeforeFunctions;
  // A file that was replaced since it was loaded has other addresses: then nothing fits here.
  file.each([&](const Elf64_Sym& symbol) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) return true;
    for (std::size_t i = 0; i < count; ++i) {
      if (reinterpret_cast<std::uintptr_t>(functions[i]) != plugin.base + symbol.st_value) continue;
      for (std::size_t method = 0; method < kMethods; ++method)
        if (found.slots[method] == nullptr && file.is_called(symbol, kSymbols[method])) found.slots[method] = &functions[i];
    }
    return true;
  });
  if (is_complete(found)) found.found_by = FoundBy::symbols;
  return found;
}

struct Segments {
  static constexpr std::size_t kMost = 16;
  struct Range {
    std::uintptr_t begin, end;
    unsigned flags;
  };
  std::uintptr_t base;
  Range ranges[kMost];
  std::size_t count;
};

int note_segments(dl_phdr_info* info, std::size_t, void* data) {
  auto& segments = *static_cast<Segments*>(data);
  if (info->dlpi_addr != segments.base) return 0;
  for (int i = 0; i < info->dlpi_phnum && segments.count < Segments::kMost; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = segments.base + header.p_vaddr;
    segments.ranges[segments.count++] = {begin, begin + header.p_memsz, header.p_flags};
  }
  return 1;
}

// The addresses in read-only data of the class's name. It may be the end of a longer string, so nothing is required before it.
template <typename Visit>
void each_type_name(const Segments& segments, Visit visit) {
  std::uint64_t start = 0;
  memcpy(&start, kTypeName, sizeof start);
  for (std::size_t s = 0; s < segments.count; ++s) {
    const Segments::Range& range = segments.ranges[s];
    if ((range.flags & (PF_R | PF_W | PF_X)) != PF_R) continue;
    for (std::uintptr_t at = range.begin; at + sizeof kTypeName <= range.end; ++at) {
      std::uint64_t here;
      memcpy(&here, reinterpret_cast<const void*>(at), sizeof here);
      if (here == start && memcmp(reinterpret_cast<const void*>(at), kTypeName, sizeof kTypeName) == 0) visit(at);
    }
  }
}

// The addresses in data of words with this value.
template <typename Visit>
void each_word(const Segments& segments, std::uintptr_t value, Visit visit) {
  for (std::size_t s = 0; s < segments.count; ++s) {
    const Segments::Range& range = segments.ranges[s];
    if ((range.flags & PF_W) == 0) continue;
    for (std::uintptr_t at = (range.begin + 7) & ~std::uintptr_t{7}; at + sizeof value <= range.end; at += sizeof value)
      if (word_at(at) == value) visit(at);
  }
}

std::size_t count_functions(std::uintptr_t first) {
  std::size_t count = 0;
  while (count <= kMostFunctions && is_code(reinterpret_cast<const void*>(word_at(first + count * sizeof(void*))))) ++count;
  return count;
}

Vtable find_by_type_information(const LoadedObject& plugin) {
  Segments segments{plugin.base, {}, 0};
  dl_iterate_phdr(note_segments, &segments);
  Vtable found;
  each_type_name(segments, [&](std::uintptr_t name) {
    each_word(segments, name, [&](std::uintptr_t name_in_type) {
      const std::uintptr_t type = name_in_type - sizeof(void*);
      each_word(segments, type, [&](std::uintptr_t type_in_vtable) {
        if (word_at(type_in_vtable - sizeof(void*)) != 0) return;  // a type that refers to this one, or a part of an object
        const std::uintptr_t first = type_in_vtable + sizeof(void*);
        const std::size_t count = count_functions(first);
        for (const Layout& layout : kLayouts) {
          if (layout.functions != count) continue;
          for (std::size_t method = 0; method < kMethods; ++method)
            found.slots[method] = reinterpret_cast<void**>(first) + layout.places[method];
          found.found_by = FoundBy::type_information;
        }
      });
    });
  });
  return found;
}

}  // namespace

const char* text_of(FoundBy found_by) {
  static constexpr const char* kTexts[] = {"none", "symbols", "type information"};
  return kTexts[static_cast<std::size_t>(found_by)];
}

Vtable find_vtable(const LoadedObject& plugin) {
  const Vtable found = find_by_symbols(plugin);
  return found.found_by != FoundBy::nothing ? found : find_by_type_information(plugin);
}

}  // namespace vramscope::capture::jax
