// The one way in which the engine uses threads: independent pieces of one job.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace vramscope::analyze {

// Runs job(piece, thread) for every piece in [0, count), in any order. The calling thread is thread 0. An exception of a job
// (most likely out of memory) is rethrown here once all threads are done.
template <typename Job>
void parallel(unsigned threads, std::size_t count, Job&& job) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr thrown;
  std::mutex mutex;
  auto work = [&](unsigned thread) {
    try {
      for (std::size_t i = next++; i < count; i = next++) job(i, thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      thrown = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> helpers;
  helpers.reserve(threads);
  try {
    for (unsigned t = 1; t < std::min<std::size_t>(threads, count); ++t) helpers.emplace_back(work, t);
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch) the limit on threads is reached: the existing ones do the
                                        // job
  }
  work(0);
  for (std::thread& helper : helpers) helper.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace vramscope::analyze
