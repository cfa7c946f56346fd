// Something that is done once, by the first of several threads; the others wait for it.
//
// Used instead of std::call_once. That one runs the function below a frame of glibc, and an exception cannot pass it: the frame
// asks for the C run-time library that the system has, which knows nothing of the one that is linked into this program, and the
// program is aborted. Out of memory, as a forged trace may cause, is such an exception.
#pragma once

#include <atomic>
#include <mutex>

namespace vramscope::support {

class Once {
 public:
  // Thread-safe. If `job` throws, the caller gets the exception, and the next one tries again.
  template <typename Job>
  void call(Job&& job) {
    if (done_.load(std::memory_order_acquire)) return;  // what the job wrote is seen: the partner of the release below
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    job();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> done_{false};
};

}  // namespace vramscope::support
