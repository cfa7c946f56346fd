// A hash for tables whose keys come from somebody else's file: without the secret, which is another one in each process, nobody
// can choose keys that all share one slot. The order of such a table must not show anywhere.
#pragma once

#include <sys/random.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace vramscope::support {

struct SecretHash {
  std::size_t operator()(std::uint64_t key) const {
    static const std::array<std::uint64_t, 2> secret = [] {
      std::array<std::uint64_t, 2> random = {0x9e3779b97f4a7c15, 0xd6e8feb86659fd93};  // where the system has none to give
      (void)!getrandom(random.data(), sizeof random, GRND_NONBLOCK);
      return random;
    }();
    key = (key ^ secret[0]) * (secret[1] | 1);
    return key ^ key >> 32;
  }
};

}  // namespace vramscope::support
