// The one way in which the engine uses threads: independent pieces of one job.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace vramscope::analyze {

// Runs job(piece, thread) for every piece in [0, count), in any order. The calling thread is thread 0.
template <typename Job>
void parallel(unsigned threads, std::size_t count, Job&& job) {
  std::atomic<std::size_t> next{0};
  auto work = [&](unsigned thread) {
    for (std::size_t i = next++; i < count; i = next++) job(i, thread);
  };
  std::vector<std::thread> helpers;
  for (unsigned t = 1; t < std::min<std::size_t>(threads, count); ++t) helpers.emplace_back(work, t);
  work(0);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace vramscope::analyze
