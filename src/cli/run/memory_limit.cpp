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

std::uint64_t g_stored = 0;  // bytes of all traces so far

// Pages of the program's own file are resident too, and are no data.
constexpr std::uint64_t kOwnPages = std::uint64_t{16} << 20;

void set_limit(std::uint64_t bytes) {
  rlimit limit{};
  if (kSanitized || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, bytes - kOwnPages);
  ::setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace

void limit_memory(std::span<const std::filesystem::path> traces) {
  for (const auto& trace : traces) {
    // Holes cost a file nothing.
    if (const auto file = support::ReadFile::open(trace)) g_stored += file->stored();
  }
  set_limit(support::memory_for(g_stored));
}

QueryLimits limit_memory_of_query() {
  constexpr std::uint64_t kDisk = 16;
  const std::uint64_t memory = support::memory_for(g_stored);
  set_limit(2 * memory);
  return {.memory = memory, .disk = kDisk * memory};
}

}  // namespace vramscope::cli
