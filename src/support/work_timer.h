// How long work takes on a machine that does nothing else.
#pragma once

#include <time.h>

#include <algorithm>

namespace vramscope::support {

// The shorter one of elapsed time and of this process's processor time: waiting for a busy machine is not work, and several
// threads do more than one second of it per second.
class WorkTimer {
 public:
  struct Seconds {
    double elapsed, processor;
  };

  static double work(Seconds seconds) { return std::min(seconds.elapsed, seconds.processor); }

  double seconds() const { return work({now(CLOCK_MONOTONIC) - began_, now(CLOCK_PROCESS_CPUTIME_ID) - worked_}); }

 private:
  static double now(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }

  double began_ = now(CLOCK_MONOTONIC), worked_ = now(CLOCK_PROCESS_CPUTIME_ID);
};

}  // namespace vramscope::support
