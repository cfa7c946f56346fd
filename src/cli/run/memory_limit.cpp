#include "cli/run/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

#include "support/file.h"
#include "support/memory_budget.h"

namespace vramscope::cli {

namespace {

// The kernel also counts the shadow memory of a sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

}  // namespace

void limit_memory(std::span<const std::filesystem::path> traces) {
  static std::uint64_t all = 0;
  for (const auto& trace : traces) {
    // Holes cost a file nothing.
    if (const auto file = support::ReadFile::open(trace)) all += file->stored();
  }
  rlimit limit{};
  if (kSanitized || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, support::memory_for(all));
  ::setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace vramscope::cli
