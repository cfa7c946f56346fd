// A best-fit allocator with coalescing that behaves like TensorFlow's: regions that double, chunks that split at twice the
// request, no region given back. Gives generated traces addresses, holes and failures that are true.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace vramscope::tracegen {

class Bfc {
 public:
  struct Options {
    std::uint64_t limit = std::uint64_t{64} << 30;
    bool growth = true;
    std::uint64_t device = ~std::uint64_t{0};  // what the device can give in all, whatever the limit says
    bool exact = false;                        // split always: a block is never larger than the rounded request
    std::uint64_t base = 0x7f0000000000;
  };
  struct Region {
    std::uint64_t address, bytes;
  };
  struct Given {
    std::uint64_t address, granted;
    std::optional<Region> grown;  // a region was allocated for it
  };
  explicit Bfc(const Options& options) : options_(options), next_address_(options.base) {}

  std::optional<Given> allocate(std::uint64_t requested);  // nullopt: out of memory
  void free(std::uint64_t address);

  std::uint64_t live() const { return live_; }
  std::uint64_t pool() const { return pool_; }
  std::uint64_t limit() const { return options_.limit; }
  std::uint64_t largest_free() const { return free_.empty() ? 0 : free_.rbegin()->first; }
  std::uint64_t free_bytes() const { return pool_ - live_; }

 private:
  struct Chunk {
    std::uint64_t bytes;
    std::uint64_t region;  // its start: chunks never merge over a border
    bool used;
  };
  std::optional<Region> extend(std::uint64_t rounded);
  Options options_;
  std::uint64_t next_address_, next_region_ = 2u << 20, live_ = 0, pool_ = 0;
  std::map<std::uint64_t, Chunk> chunks_;                   // by address
  std::set<std::pair<std::uint64_t, std::uint64_t>> free_;  // size, address
};

}  // namespace vramscope::tracegen
