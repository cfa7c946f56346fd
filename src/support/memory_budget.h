// How much memory and work a file may use: a fixed share, plus a multiple of its size.
//
// Counts in a file cost it nothing, so whatever is sized by one is charged here first. Recordings stay far below the limits:
// each event takes at least 0.1 bytes of the file, and about 30 bytes of memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace vramscope::support {

inline constexpr std::uint64_t kMemoryForAnyFile = std::uint64_t{512} << 20;
inline constexpr std::uint64_t kMemoryPerFileByte = 256;
inline constexpr std::uint64_t kEventsPerFileByte = 10;
inline constexpr std::uint64_t kMostForAnyFile = std::uint64_t{1} << 50;  // of either

// What a program that answers questions about a file of this size may use.
constexpr std::uint64_t memory_for(std::uint64_t file_bytes) {
  return file_bytes > kMostForAnyFile / kMemoryPerFileByte ? kMostForAnyFile
                                                           : kMemoryForAnyFile + file_bytes * kMemoryPerFileByte;
}

// How many events a recording of this size can hold; a file may claim more.
constexpr std::uint64_t events_for(std::uint64_t file_bytes) {
  return file_bytes > kMostForAnyFile / kEventsPerFileByte ? kMostForAnyFile : file_bytes * kEventsPerFileByte;
}

// How a refusal ends: "more than 513.0 MiB, the limit for a file of its size".
std::string more_than(std::uint64_t limit);
// Where an allocation failed, and nothing else is known.
inline constexpr std::string_view kNotEnoughMemory =
    "not enough memory: the trace is damaged or forged, or this machine has too little";

// Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t bytes) : limit_(bytes), left_(bytes) {}
  std::uint64_t limit() const { return limit_; }
  // False if that is more than what is left; then nothing is charged. Nothing is ever returned.
  bool take(std::uint64_t count, std::uint64_t size = 1) {
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    do {
      if (size != 0 && count > left / size) return false;
    } while (!left_.compare_exchange_weak(left, left - count * size, std::memory_order_relaxed));
    return true;
  }

 private:
  std::uint64_t limit_;
  std::atomic<std::uint64_t> left_;
};

}  // namespace vramscope::support
