// Hashes for stacks. Content hashes are part of the trace (they join runs and ranks): never change them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vramscope::stacks {

inline constexpr std::uint64_t kHash0 = 0x9e3779b97f4a7c15;
inline constexpr std::uint64_t kHash1 = 0xbf58476d1ce4e5b9;
inline constexpr std::uint64_t kHash2 = 0x94d049bb133111eb;

// Both halves of a 64 x 64 bit product, folded.
inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t chain(std::uint64_t hash, std::uint64_t value) { return (hash ^ value) * kHash0 + (hash >> 32); }

inline std::uint64_t hash_bytes(const char* data, std::size_t bytes, std::uint64_t seed) {
  std::uint64_t hash = seed ^ fold(bytes ^ kHash1, kHash0);
  for (; bytes >= 8; data += 8, bytes -= 8) {
    std::uint64_t word;
    std::memcpy(&word, data, 8);
    hash = fold(hash ^ word, kHash2);
  }
  std::uint64_t tail = 0;
  std::memcpy(&tail, data, bytes);
  return fold(hash ^ tail, kHash1);
}

}  // namespace vramscope::stacks
