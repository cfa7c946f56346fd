#include "import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return vramscope::fuzz::import_one("tensorflow-log", data, size);
}
