// Late attach: replacing functions in a process where everything is already bound.
#pragma once

#include <cstddef>

namespace vramscope::capture {

struct Replacement {
  const char* symbol;  // as imported or exported
  void* original;
  void* ours;
};

// Redirects the import tables of all loaded objects, and the slots of the named vtables in `library`, from original to ours.
// Remembers what it changed. Returns the number of places; 0 means that nothing would be seen.
int redirect(void* library, const char* const* vtables, std::size_t vtable_count, const Replacement* replacements,
             std::size_t replacement_count);
// Redirects function pointers that loaded objects keep in their own writable data.
int redirect_data(const Replacement* replacements, std::size_t replacement_count);
// Puts everything back.
void restore();

}  // namespace vramscope::capture
