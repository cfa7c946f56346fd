// Any text as a request of the page: its name, a question mark, and its parameters as in an address.
#include "scratch.h"
#include "serve/engine_service.h"
#include "serve/params.h"

namespace {

vramscope::serve::EngineService& service() {
  static vramscope::serve::EngineService service(std::shared_ptr<vramscope::serve::Library>(
      vramscope::serve::Library::open({vramscope::fuzz::write_sample().string()}, false).value()));
  return service;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramscope;
  if (size > 8192) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('?'), text.size());
  const serve::Params params = serve::parse_query(text.substr(std::min(end + 1, text.size())));
  const auto answer = serve::dispatch(service(), text.substr(0, end), params);
  if (!answer) fuzz::require(!answer.error().message.empty());
  return 0;
}
