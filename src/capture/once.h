// Something that is done once per process, by the first thread that needs it, while the others wait for a few microseconds.
#pragma once

#include <unistd.h>

#include <atomic>

namespace vramscope::capture {

class Once {
 public:
  static constexpr int kAgain = 0;  // not done yet, or not successful so far

  // `work()` returns the state to keep, a positive number, or kAgain to be called again the next time.
  template <typename Work>
  int operator()(Work work) {
    for (;;) {
      int state = state_.load(std::memory_order_acquire);
      if (state > 0) return state;
      // Negative: the process whose thread is doing it. A child that was forked meanwhile has no such thread, and takes over.
      const int mine = -getpid();
      if (state == mine) continue;
      if (!state_.compare_exchange_strong(state, mine, std::memory_order_acquire)) continue;
      const int result = work();
      state_.store(result, std::memory_order_release);
      return result;
    }
  }
  int state() const { return state_.load(std::memory_order_acquire); }

 private:
  std::atomic<int> state_{kAgain};
};

}  // namespace vramscope::capture
