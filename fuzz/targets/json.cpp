// Any text as JSON: a value or an error that says where, never more memory than the limits give.
#include "read_all.h"
#include "support/json_reader.h"

namespace {

// Touches every value; also counts, to hold the reader to its limits.
std::size_t walk(const vramscope::support::JsonValue& value, std::size_t depth) {
  vramscope::fuzz::require(depth <= vramscope::support::JsonLimits{}.depth);
  std::size_t seen = 1 + (value.text() ? value.text()->size() : 0);
  if (value.number() && value.count()) vramscope::fuzz::require(*value.number() >= 0);
  if (value.array() != nullptr)
    for (const auto& each : *value.array()) seen += walk(each, depth + 1);
  if (value.object() != nullptr)
    for (const auto& each : *value.object()) {
      vramscope::fuzz::require(value.member(each.name) != nullptr);
      seen += each.name.size() + walk(each.value, depth + 1);
    }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramscope;
  const auto value = support::read_json({reinterpret_cast<const char*>(data), size});
  if (value)
    fuzz::require(walk(*value, 0) <= 4 * size);
  else
    fuzz::require(value.error().message.starts_with("byte "));
  return 0;
}
