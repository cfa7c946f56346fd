// Time stamps for records: the time-stamp counter if it is trustworthy on this machine, else the monotonic clock.
#pragma once

#include <time.h>

#include <cstdint>

namespace vramscope::base {

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

inline std::uint64_t tsc() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return monotonic_ns();
#endif
}

}  // namespace vramscope::base
