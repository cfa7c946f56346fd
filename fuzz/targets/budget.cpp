// Any text as a budget file, checked against a trace.
#include "sample_engine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramscope;
  const analyze::Engine& engine = fuzz::sample_engine();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto answer = analyze::check(engine, text, size % 2 == 0 ? &engine : nullptr);
  if (!answer) fuzz::require(!answer.error().message.empty());
  return 0;
}
