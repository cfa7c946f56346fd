// A fixed-size cache shared by all threads without locks.
//
// The key is stored XORed with the values, so that a slot read while another thread writes it does not match and counts as
// absent. A full neighborhood loses an old entry, which is then determined again. Zeroed memory is an empty cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vramscope::stacks {

template <std::size_t kValues, unsigned kBits>
class SharedCache {
 public:
  struct Entry {
    std::uint64_t value[kValues];
  };

  bool find(std::uint64_t key, Entry& out) const {
    key |= 1;  // never the key of an empty slot
    const Slot* slot = &slots_[(key >> (64 - kBits)) & ~(kWays - 1)];
    for (std::size_t way = 0; way < kWays; ++way, ++slot) {
      std::uint64_t check = slot->check.load(std::memory_order_relaxed);
      for (std::size_t i = 0; i < kValues; ++i) {
        out.value[i] = slot->value[i].load(std::memory_order_relaxed);
        check ^= out.value[i];
      }
      if (check == key) return true;
    }
    return false;
  }

  void put(std::uint64_t key, const Entry& entry) {
    key |= 1;
    Slot* const first = &slots_[(key >> (64 - kBits)) & ~(kWays - 1)];
    Slot* slot = first + ((key >> 1) & (kWays - 1));  // which one to replace if all are taken
    for (std::size_t way = 0; way < kWays; ++way) {
      const std::uint64_t there = key_in(first[way]);
      if (there == key || there == 0) {  // a new value replaces the old one
        slot = first + way;
        break;
      }
    }
    std::uint64_t check = key;
    for (std::size_t i = 0; i < kValues; ++i) {
      slot->value[i].store(entry.value[i], std::memory_order_relaxed);
      check ^= entry.value[i];
    }
    slot->check.store(check, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kWays = 4;
  struct Slot {
    std::atomic<std::uint64_t> check;
    std::atomic<std::uint64_t> value[kValues];
  };
  static std::uint64_t key_in(const Slot& slot) {
    std::uint64_t key = slot.check.load(std::memory_order_relaxed);
    for (const auto& value : slot.value) key ^= value.load(std::memory_order_relaxed);
    return key;
  }
  Slot slots_[std::size_t{1} << kBits];
};

}  // namespace vramscope::stacks
