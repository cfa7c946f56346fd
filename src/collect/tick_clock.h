// Turns the recorder's ticks into time. One for all processes: the time-stamp counter is the machine's.
#pragma once

#include <cstdint>

#include "spool/layout.h"

namespace vramscope::collect {

std::uint64_t monotonic_ns();
std::uint64_t realtime_ns();

// What a process should use for its ticks: the time-stamp counter where the kernel itself trusts it ("tsc"), else "mono".
const char* preferred_clock();

class TickClock {
 public:
  TickClock();
  // Reads both clocks once more: the longer the base line, the better the rate. A few times a second is plenty.
  void calibrate();
  // For spools of a process that began before us: its own simultaneous reading is a far better base line.
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
