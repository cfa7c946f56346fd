#include "capture/framework.h"

#include <string.h>

namespace vramscope::capture {

const Framework* framework_of(record::Framework id) {
  for (const Framework* framework : frameworks())
    if (framework->id == id) return framework;
  return nullptr;
}

const Framework* framework_called(const char* word) {
  for (const Framework* framework : frameworks())
    if (word != nullptr && strcmp(framework->word, word) == 0) return framework;
  return nullptr;
}

const Framework* framework_with_entry(const char* symbol) {
  for (const Framework* framework : frameworks())
    if (framework->plugin_entry != nullptr && strcmp(framework->plugin_entry, symbol) == 0) return framework;
  return nullptr;
}

}  // namespace vramscope::capture
