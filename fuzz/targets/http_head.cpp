// Any bytes as the head of a request.
#include <cstdint>
#include <cstdlib>

#include "serve/http/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramscope::serve::http;
  const auto request = parse_head({reinterpret_cast<const char*>(data), size});
  if (!request) {
    if (request.error().message.empty()) std::abort();
    return 0;
  }
  if (request->path.find('?') != std::string::npos || request->path.find('\n') != std::string::npos) std::abort();
  (void)request->header("host");
  return 0;
}
