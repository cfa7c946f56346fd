// Finds the class tsl::BFCAllocator in a plugin of XLA, which exports one function and nothing of the class.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/elf_symbols.h"

namespace vramscope::capture::jax {

// The virtual functions that are used. Their places in the vtable differ between versions.
enum class Method : std::uint8_t {
  destroy,
  destroy_and_free,
  name,
  allocate,
  deallocate,
  allocated_size,
  get_stats,
  memory_type,
  kCount
};

// How the functions were found: by their symbols in the plugin's file, or in a stripped one by the class's type information, with
// the number of functions telling which version of the class it is.
enum class FoundBy : std::uint8_t { nothing, symbols, type_information };
const char* text_of(FoundBy found_by);

struct Vtable {
  FoundBy found_by = FoundBy::nothing;
  void** slots[static_cast<std::size_t>(Method::kCount)] = {};  // NULL: not found

  void** slot(Method method) const { return slots[static_cast<std::size_t>(method)]; }
};

// Complete, with at least allocate, deallocate and allocated_size, or found by nothing.
Vtable find_vtable(const LoadedObject& plugin);

}  // namespace vramscope::capture::jax
