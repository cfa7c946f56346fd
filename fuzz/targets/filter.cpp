// Any text as a filter, asked of a trace; and what the filter box would offer for it.
#include "sample_engine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramscope;
  const analyze::Engine& engine = fuzz::sample_engine();
  if (size > 4096) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const Status fine = engine.check_filter(text); !fine) {
    fuzz::require(!fine.error().message.empty());
  } else {
    analyze::LiveRequest request;
    request.where = text;
    (void)engine.live(request);
    (void)engine.check_matches(text, analyze::Engine::kEveryPlace);
  }
  (void)engine.complete(text);
  (void)engine.resolve(text);
  return 0;
}
