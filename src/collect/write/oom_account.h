// The message that is printed at once when a request for memory has finally failed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vramscope::collect {

struct OomAccount {
  std::string pool;
  std::string op;  // origin of the request; empty = unknown
  std::uint64_t requested = 0;
  std::uint64_t live = 0;
  std::uint64_t regions = 0;  // what the pool holds; 0 = unknown
  std::uint64_t largest_free = 0;
  std::uint64_t limit = 0;  // 0 = unknown
  struct Holder {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
  };
  std::vector<Holder> holders;  // largest first
};

// Several complete lines; the first one is the answer.
std::string describe(const OomAccount& account);

}  // namespace vramscope::collect
