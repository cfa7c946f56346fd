// Any text as XLA's buffer assignment.
#include <cstdlib>

#include "analyze/xla_dump.h"
#include "analyze/xla_frames.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const vramscope::analyze::XlaFrames frames({reinterpret_cast<const char*>(data), size}, {});
  for (std::uint64_t frame = 0; frame < 16; ++frame) static_cast<void>(frames.line_of(frame));
  const auto blocks = vramscope::analyze::read_buffer_assignment({reinterpret_cast<const char*>(data), size});
  if (!blocks) {
    if (blocks.error().message.empty()) std::abort();
    return 0;
  }
  for (const auto& block : *blocks)
    if (block.unused > block.bytes) std::abort();
  return 0;
}
