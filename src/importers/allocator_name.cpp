#include "importers/allocator_name.h"

#include <charconv>

namespace vramscope::importers {

PoolInfo tensorflow_pool(std::string_view allocator) {
  PoolInfo out{allocator, -1, trace::Memory::host, trace::Framework::tensorflow};
  constexpr std::string_view kDevice = "GPU_";
  if (allocator.starts_with(kDevice)) {
    std::uint16_t number = 0;
    const char* digits = allocator.data() + kDevice.size();
    if (std::from_chars(digits, allocator.data() + allocator.size(), number).ptr != digits) {
      out.device = number;
      out.memory = trace::Memory::device;
    }
  } else if (allocator.find("gpu_host") != std::string_view::npos) {
    out.memory = trace::Memory::pinned;
  }
  return out;
}

}  // namespace vramscope::importers
