// Whether memory can be read without a fault. Each page is probed once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vramscope::stacks {

// Asks the kernel about one page, for memory that may be unmapped at any time.
bool ask_kernel(std::uint64_t address);
// The same, and remembers a positive answer.
bool probe_page(std::uint64_t address);

inline constexpr std::size_t kPageCacheEntries = 4096;
extern std::uint64_t g_readable_pages[kPageCacheEntries];

inline bool readable_page(std::uint64_t address) {
  const std::uint64_t page = address >> 12;
  const std::uint64_t known = __atomic_load_n(&g_readable_pages[page % kPageCacheEntries], __ATOMIC_RELAXED);
  return known == page || probe_page(address);
}

// Neither in the NULL page nor in the kernel's half.
inline bool is_user(std::uint64_t address) { return address - 0x1000 < 0x7fffffffe000; }

// `bytes` up to one page.
inline bool readable(std::uint64_t address, std::size_t bytes) {
  if (!is_user(address)) return false;
  if (!readable_page(address)) return false;
  const std::uint64_t last = address + bytes - 1;
  return (last >> 12) == (address >> 12) || readable_page(last);
}

// Reads at an address already known to be readable.
template <typename T>
inline T peek(std::uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(T));
  return value;
}

}  // namespace vramscope::stacks
