// Whether memory can be read without a fault. Pages are asked about once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vramscope::stacks {

// Asks the kernel about one page; remembers a yes.
bool probe_page(std::uint64_t address);

inline constexpr std::size_t kPageCacheEntries = 4096;
extern std::uint64_t g_readable_pages[kPageCacheEntries];

inline bool readable_page(std::uint64_t address) {
  const std::uint64_t page = address >> 12;
  const std::uint64_t known = __atomic_load_n(&g_readable_pages[page % kPageCacheEntries], __ATOMIC_RELAXED);
  return known == page || probe_page(address);
}

// `bytes` up to one page.
inline bool readable(std::uint64_t address, std::size_t bytes) {
  if (address - 0x1000 >= 0x7fffffffe000) return false;  // NULL page, kernel half
  if (!readable_page(address)) return false;
  const std::uint64_t last = address + bytes - 1;
  return (last >> 12) == (address >> 12) || readable_page(last);
}

// Reads at a place already known to be readable.
template <typename T>
inline T peek(std::uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(T));
  return value;
}

}  // namespace vramscope::stacks
