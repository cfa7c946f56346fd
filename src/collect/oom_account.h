// What to say at once when a request for memory failed for good.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vramscope::collect {

struct OomAccount {
  std::string pool;
  std::string op;  // who asked; empty = not known
  std::uint64_t requested = 0;
  std::uint64_t live = 0;
  std::uint64_t regions = 0;  // what the pool holds; 0 = not known
  std::uint64_t largest_free = 0;
  std::uint64_t limit = 0;  // 0 = not known
  struct Holder {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
  };
  std::vector<Holder> holders;  // largest first
};

// Several lines, each ended, the first one the answer.
std::string describe(const OomAccount& account);

}  // namespace vramscope::collect
