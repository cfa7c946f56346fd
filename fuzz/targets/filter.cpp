// Any text as a filter, asked of a trace; and what the filter box would offer for it.
#include "sample_engine.h"

namespace {

// A question that cannot be answered says why.
template <typename Answer>
void require_words(const Answer& answer) {
  if (!answer) vramscope::fuzz::require(!answer.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramscope;
  const analyze::Engine& engine = fuzz::sample_engine();
  if (size > 4096) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Status fine = engine.check_filter(text);
  require_words(fine);
  if (fine) {
    analyze::LiveRequest request;
    request.where = text;
    require_words(engine.live(request));
    require_words(engine.check_matches(text, analyze::Engine::kEveryPlace));
  }
  (void)engine.complete(text);
  require_words(engine.resolve(text));
  return 0;
}
