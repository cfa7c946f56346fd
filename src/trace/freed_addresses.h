// The most recently freed addresses, by block size: an allocator soon hands them out again. The encoder and the decoder of a
// chunk keep one each and update it identically, so that a small number is enough for an address.
#pragma once

#include <tsl/robin_map.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "support/secret_hash.h"

namespace vramscope::trace {

class FreedAddresses {
 public:
  // Number of the list of blocks with this many bytes.
  std::uint32_t list_of(std::uint64_t bytes) {
    const auto [found, inserted] = list_of_.try_emplace(bytes, static_cast<std::uint32_t>(lists_.size()));
    if (inserted) lists_.emplace_back();
    return found->second;
  }

  void add(std::uint32_t list, std::uint64_t address) { lists_[list].add(address); }

  // How many frees ago, 1 = the last one; the address is removed from the list. 0: it is not in the list.
  std::uint64_t find(std::uint32_t list, std::uint64_t address) {
    List& l = lists_[list];
    for (std::uint32_t ago = 1; ago <= l.count; ++ago) {
      if (l.freed(ago) != address) continue;
      l.erase(ago);
      return ago;
    }
    return 0;
  }

  // The inverse, for ago > 0. False: the list is shorter than that.
  bool take(std::uint32_t list, std::uint64_t ago, std::uint64_t& address) {
    List& l = lists_[list];
    if (ago > l.count) return false;
    address = l.freed(static_cast<std::uint32_t>(ago));
    l.erase(static_cast<std::uint32_t>(ago));
    return true;
  }

 private:
  static constexpr std::uint32_t kKept = 8;  // part of the format

  struct List {
    std::array<std::uint64_t, kKept> ring;
    std::uint32_t next = 0;
    std::uint32_t count = 0;

    std::uint64_t& freed(std::uint32_t ago) { return ring[(next - ago) % kKept]; }
    void add(std::uint64_t address) {
      ring[next++ % kKept] = address;
      count = std::min(count + 1, kKept);
    }
    void erase(std::uint32_t ago) {
      for (; ago > 1; --ago) freed(ago) = freed(ago - 1);
      --next;
      --count;
    }
  };

  tsl::robin_map<std::uint64_t, std::uint32_t, support::SecretHash> list_of_;
  std::vector<List> lists_;
};

}  // namespace vramscope::trace
