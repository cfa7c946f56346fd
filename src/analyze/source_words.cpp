#include "analyze/source_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/source.h"

namespace vramscope::analyze {

std::string source_in_words(const Overview& overview) {
  const auto setting = [&](std::string_view key) -> std::string_view {
    const auto found = std::ranges::find(overview.settings, key, &std::pair<std::string, std::string>::first);
    return found == overview.settings.end() ? std::string_view() : found->second;
  };
  const std::string_view lacks = setting(trace::kSourceLacks);
  if (lacks.empty()) return {};
  return fmt::format("imported from {}, which does not contain: {}", setting(trace::kSourceTitle), lacks);
}

}  // namespace vramscope::analyze
