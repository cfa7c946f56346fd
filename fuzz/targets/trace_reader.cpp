// Any bytes as a trace file.
#include "memory_file.h"
#include "read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const vramscope::fuzz::MemoryFile file({data, size});
  vramscope::fuzz::read_all(file.path());
  return 0;
}
