// Any text as XLA's buffer assignment.
#include <cstdlib>

#include "analyze/xla_dump.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto blocks = vramscope::analyze::read_buffer_assignment({reinterpret_cast<const char*>(data), size});
  if (!blocks) {
    if (blocks.error().message.empty()) std::abort();
    return 0;
  }
  for (const auto& block : *blocks)
    if (block.unused > block.bytes) std::abort();
  return 0;
}
