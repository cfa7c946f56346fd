// Late attach: replacing functions in a process where everything is already bound.
#pragma once

#include <cstddef>

#include "capture/elf_symbols.h"

namespace vramscope::capture {

struct Replacement {
  const char* symbol;  // as imported or exported
  void* original;
  void* ours;
};

// Redirects the import tables of all loaded objects, and the slots of the named vtables in `object`, from original to ours.
// Remembers what it changed. Returns the number of places; 0 means that nothing would be recorded.
int redirect(const LoadedObject& object, const char* const* vtables, std::size_t vtable_count, const Replacement* replacements,
             std::size_t replacement_count);
// Redirects one function pointer in a loaded object: a slot of a vtable.
bool redirect_slot(void** slot, void* ours);
// Redirects function pointers that loaded objects keep in their own writable data.
int redirect_data(const Replacement* replacements, std::size_t replacement_count);
// Restores everything.
void restore();

}  // namespace vramscope::capture
