// A hash for tables whose keys come from a file, a spool or a socket: addresses, sizes and composed ids, whose low bits repeat.
// Without the secret, which is another one in each process, nobody can choose keys that all share one slot. The order of such a
// table must not show anywhere.
#pragma once

#include <sys/random.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace vramscope::support {

inline const std::array<std::uint64_t, 2> kHashSecret = [] {
  std::array<std::uint64_t, 2> random = {0x9e3779b97f4a7c15, 0xd6e8feb86659fd93};  // where the system has none to give
  (void)!getrandom(random.data(), sizeof random, GRND_NONBLOCK);
  return random;
}();

struct SecretHash {
  std::size_t operator()(std::uint64_t key) const {
    key = (key ^ kHashSecret[0]) * (kHashSecret[1] | 1);
    return key ^ key >> 32;
  }
};

}  // namespace vramscope::support
