#include "device_memory.h"

#include "shared_state.h"

namespace fakegpu {
namespace {

bool reuse() {
  static const bool wanted = number_from_env("FAKEGPU_REUSE", 0) != 0;
  return wanted;
}

}  // namespace

bool DeviceMemory::charge(std::uint64_t bytes, std::uint64_t overhead) {
  if (device_used(device_) + bytes + overhead > device_bytes()) return false;
  own_entry()->used[device_] += bytes;
  own_entry()->overhead[device_] += overhead;
  return true;
}

void DeviceMemory::refund(std::uint64_t bytes, std::uint64_t overhead) {
  own_entry()->used[device_] -= bytes;
  own_entry()->overhead[device_] -= overhead;
}

std::uint64_t DeviceMemory::address_range(std::uint64_t bytes, std::uint64_t alignment) {
  std::uint64_t address = 0;
  if (take_freed(bytes, &address)) return address;
  next_ = round_up(next_, alignment);
  address = next_;
  next_ += round_up(bytes, alignment);
  return address;
}

void DeviceMemory::give_back_range(std::uint64_t address, std::uint64_t bytes) {
  if (reuse()) freed_[bytes].push_back(address);
}

bool DeviceMemory::take_freed(std::uint64_t bytes, std::uint64_t* address) {
  if (!reuse()) return false;
  const auto found = freed_.find(bytes);
  if (found == freed_.end() || found->second.empty()) return false;
  *address = found->second.back();
  found->second.pop_back();
  return true;
}

bool DeviceMemory::hold_slab(std::uint64_t slab) {
  if (slabs_[slab].live == 0 && !charge(kSlabBytes)) return false;
  ++slabs_[slab].live;
  return true;
}

std::optional<std::uint64_t> DeviceMemory::allocate_small(std::uint64_t bytes) {
  std::uint64_t address = 0;
  if (take_freed(bytes, &address)) {
    if (hold_slab(address / kSlabBytes * kSlabBytes)) return address;
    freed_[bytes].push_back(address);
    return {};
  }
  if (current_slab_ == 0 || slabs_[current_slab_].live == 0 || slabs_[current_slab_].filled + bytes > kSlabBytes) {
    current_slab_ = address_range(kSlabBytes);
  }
  if (!hold_slab(current_slab_)) return {};
  Slab& slab = slabs_[current_slab_];
  address = current_slab_ + slab.filled;
  slab.filled += bytes;
  return address;
}

std::optional<std::uint64_t> DeviceMemory::allocate(std::uint64_t bytes) {
  std::optional<std::uint64_t> address;
  if (bytes < kSlabBytes) {
    address = allocate_small(round_up(bytes, kStepBytes));
  } else if (const std::uint64_t rounded = round_up(bytes, kSlabBytes); charge(rounded)) {
    address = address_range(rounded);
  }
  if (address) sizes_[*address] = bytes;
  return address;
}

std::optional<std::uint64_t> DeviceMemory::release(std::uint64_t address) {
  const auto found = sizes_.find(address);
  if (found == sizes_.end()) return {};
  const std::uint64_t bytes = found->second;
  sizes_.erase(found);
  if (bytes < kSlabBytes) {
    if (--slabs_[address / kSlabBytes * kSlabBytes].live == 0) refund(kSlabBytes);
    give_back_range(address, round_up(bytes, kStepBytes));
  } else {
    refund(round_up(bytes, kSlabBytes));
    give_back_range(address, round_up(bytes, kSlabBytes));
  }
  return bytes;
}

std::optional<std::uint64_t> DeviceMemory::size_of(std::uint64_t address) const {
  const auto found = sizes_.find(address);
  if (found == sizes_.end()) return {};
  return found->second;
}

}  // namespace fakegpu
