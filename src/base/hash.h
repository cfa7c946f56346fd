// A fast 64-bit hash of a few to a few hundred bytes, for interning inside the user's process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vramscope::base {

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t load64(const char* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, 8);
  return word;
}

// The last 1 to 8 bytes as one word, without reading past the end.
inline std::uint64_t load_tail(const char* bytes, std::size_t count) {
  if (count >= 4) {
    std::uint32_t low;
    std::uint32_t high;
    std::memcpy(&low, bytes, 4);
    std::memcpy(&high, bytes + count - 4, 4);
    return (static_cast<std::uint64_t>(high) << 32) | low;
  }
  const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])); };
  return count == 0 ? 0 : (byte(0) << 16) | (byte(count >> 1) << 8) | byte(count - 1);
}

// Never 0: tables use 0 for an empty slot.
inline std::uint64_t hash(const char* bytes, std::size_t count, std::uint64_t seed = 0) {
  constexpr std::uint64_t k0 = 0x9e3779b97f4a7c15, k1 = 0xd6e8feb86659fd93, k2 = 0xa0761d6478bd642f;
  std::uint64_t h = (seed + count) * k0 ^ k2;
  if (count >= 8) {
    // Whole pairs of words, then the last two words, which may overlap the previous ones.
    const char* end = bytes + count;
    for (; end - bytes > 16; bytes += 16) h = mix(load64(bytes) ^ k0, load64(bytes + 8) ^ h);
    h = mix(load64(count >= 16 ? end - 16 : bytes) ^ k1, load64(end - 8) ^ h);
  } else {
    h = mix(load_tail(bytes, count) ^ k1, h);
  }
  return h != 0 ? h : 1;
}

}  // namespace vramscope::base
