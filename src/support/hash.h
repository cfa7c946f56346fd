// A hash for keys that are addresses or are composed of ids: their low bits repeat, and a table with a power of two of slots
// uses only those.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::support {

struct Mix {
  std::size_t operator()(std::uint64_t key) const {
    key *= 0x9e3779b97f4a7c15ULL;
    return key ^ key >> 32;
  }
};

}  // namespace vramscope::support
