// Converts the recorder's ticks to time. One clock for all processes, because the time-stamp counter belongs to the machine.
#pragma once

#include <cstdint>

#include "spool/layout.h"

namespace vramscope::collect {

std::uint64_t monotonic_ns();
std::uint64_t realtime_ns();

// What a process should use for its ticks: the time-stamp counter if the kernel itself trusts it ("tsc"), else "mono".
const char* preferred_clock();

class TickClock {
 public:
  TickClock();
  // Reads both clocks again: the longer the baseline, the better the rate. A few times per second is enough.
  void calibrate();
  // For spools of a process that started before us: its own simultaneous reading is a much better baseline.
  void widen_base(const spool::Header& header);

  std::uint64_t to_monotonic_ns(spool::Clock clock, std::uint64_t ticks) const;

 private:
  struct Reading {
    std::uint64_t ticks;
    std::uint64_t ns;
  };
  static Reading read();

  Reading first_;
  Reading last_;
  double ns_per_tick_ = 0;
};

}  // namespace vramscope::collect
