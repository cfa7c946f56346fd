// Any bytes as the head of a request, as the first line of an answer, and as an address.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "serve/http/message.h"
#include "serve/http/post.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramscope::serve::http;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto status = check_status(text); !status && status.error().message.empty()) std::abort();
  if (const auto url = parse_url(text, {}); url && (url->host.empty() || url->port == 0 || !url->path.starts_with('/')))
    std::abort();
  const auto request = parse_head(text);
  if (!request) {
    if (request.error().message.empty()) std::abort();
    return 0;
  }
  if (request->path.find('?') != std::string::npos || request->path.find('\n') != std::string::npos) std::abort();
  (void)request->header("host");
  return 0;
}
