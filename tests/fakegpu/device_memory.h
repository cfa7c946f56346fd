// The address space and the books of one fake device, as measured on a real one: below 2 MiB allocations share slabs of 2 MiB at
// steps of 512 bytes, from 2 MiB on they take whole multiples of 2 MiB.
//
// Addresses are deterministic and never used twice; FAKEGPU_REUSE=1 hands out the address that was freed last, at once, which is
// what provokes races.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace fakegpu {

inline constexpr std::uint64_t kSlabBytes = 2ull << 20;
inline constexpr std::uint64_t kStepBytes = 512;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

// Not locked: the driver's one lock covers it.
class DeviceMemory {
 public:
  explicit DeviceMemory(int device) : device_(device), next_(0x3000'0000'0000ull + (static_cast<std::uint64_t>(device) << 40)) {}

  // Takes `bytes` from the device's books. False: not enough free.
  bool charge(std::uint64_t bytes, std::uint64_t overhead = 0);
  void refund(std::uint64_t bytes, std::uint64_t overhead = 0);

  // Address of new linear memory, charged; nothing when the device is full.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  // Size asked for, or nothing if there is no such allocation.
  std::optional<std::uint64_t> release(std::uint64_t address);
  std::optional<std::uint64_t> size_of(std::uint64_t address) const;

  // Addresses only, no memory: pools, reservations, graphs.
  std::uint64_t address_range(std::uint64_t bytes, std::uint64_t alignment = kSlabBytes);
  void give_back_range(std::uint64_t address, std::uint64_t bytes);

 private:
  struct Slab {
    std::uint64_t filled = 0;
    std::uint32_t live = 0;
  };
  std::optional<std::uint64_t> allocate_small(std::uint64_t bytes);
  bool hold_slab(std::uint64_t slab);
  bool take_freed(std::uint64_t bytes, std::uint64_t* address);

  int device_;
  std::uint64_t next_;
  std::uint64_t current_slab_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> sizes_;  // address -> size asked for
  std::unordered_map<std::uint64_t, Slab> slabs_;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> freed_;  // rounded size -> addresses, for FAKEGPU_REUSE
};

}  // namespace fakegpu
