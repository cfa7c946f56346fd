#include "analyze/verdict/ending.h"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace vramscope::analyze {
namespace {

// The number that a setting has; none if it is missing.
std::optional<std::int64_t> number_of(const Store& store, std::string_view key) {
  const std::string text = setting(store, key);
  std::int64_t value = 0;
  if (text.empty() || std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

}  // namespace

Ending ending_of(const Engine::State& s) {
  const Store& store = s.store;
  Ending out{.signal = number_of(store, "process.signal"), .exit_code = number_of(store, "process.exit_code")};
  out.step = s.step_number(store.events());
  out.inside_step = out.step > 0;
  for (const StepRow& step : store.steps)
    if (!out.inside_step && step.number > 0 && store.name(step.kind) == "train") out.step = step.number;
  return out;
}

}  // namespace vramscope::analyze
