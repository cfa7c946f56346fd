#include "collect/sample/tick_clock.h"

#include <time.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace vramscope::collect {

namespace {

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t tsc() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return clock_ns(CLOCK_MONOTONIC);
#endif
}

}  // namespace

std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
std::uint64_t realtime_ns() { return clock_ns(CLOCK_REALTIME); }

const char* preferred_clock() {
  // The kernel uses "tsc" only if it is constant, synchronized between cores and passed its watchdog.
  std::ifstream source("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  source >> name;
  return name == "tsc" ? "tsc" : "mono";
}

// The tightest of a few readings: an interrupt between the two clocks would be an error of microseconds.
TickClock::Reading TickClock::read() {
  Reading best{};
  std::uint64_t width = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::uint64_t before = tsc();
    const std::uint64_t ns = monotonic_ns();
    const std::uint64_t after = tsc();
    if (after - before >= width) continue;
    width = after - before;
    best = {before + width / 2, ns};
  }
  return best;
}

TickClock::TickClock() : first_(read()), last_(first_) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  calibrate();
}

void TickClock::calibrate() {
  const Reading now = read();
  if (now.ticks <= first_.ticks) return;
  last_ = now;
  ns_per_tick_ = static_cast<double>(last_.ns - first_.ns) / static_cast<double>(last_.ticks - first_.ticks);
}

void TickClock::widen_base(const spool::Header& header) {
  if (header.clock != spool::Clock::tsc || header.ticks0 >= first_.ticks || header.monotonic0_ns >= first_.ns) return;
  // A reading from another boot, or nonsense: it must agree with the rate that we measured ourselves.
  const double rate = static_cast<double>(last_.ns - header.monotonic0_ns) / static_cast<double>(last_.ticks - header.ticks0);
  if (rate > 0.98 * ns_per_tick_ && rate < 1.02 * ns_per_tick_) {
    first_ = {header.ticks0, header.monotonic0_ns};
    ns_per_tick_ = rate;
  }
}

std::uint64_t TickClock::to_monotonic_ns(spool::Clock clock, std::uint64_t ticks) const {
  if (clock != spool::Clock::tsc) return ticks;
  const double offset =
      (ticks >= last_.ticks ? static_cast<double>(ticks - last_.ticks) : -static_cast<double>(last_.ticks - ticks));
  const double ns = offset * ns_per_tick_ + static_cast<double>(last_.ns);
  return ns > 0 ? static_cast<std::uint64_t>(ns) : 0;
}

}  // namespace vramscope::collect
