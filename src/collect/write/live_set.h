// What is live right now, by pool: the collector's own account, for OOM reports and for checking the recorder's totals.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <map>
#include <vector>

#include "support/secret_hash.h"

namespace vramscope::collect {

struct LiveBlock {
  std::uint64_t granted = 0;
  std::uint64_t requested = 0;
  std::uint32_t site = 0;  // the trace's site, to record it again if its free is reverted
  std::uint32_t op = 0;    // spool string ids
  std::uint32_t owner = 0;
  std::int64_t step = 0;
};

struct PoolAccount {
  std::uint64_t allocs = 0;
  std::uint64_t frees = 0;
  std::uint64_t live = 0;
  std::uint64_t peak = 0;
  std::uint64_t largest = 0;
  std::uint64_t regions = 0;
  std::uint64_t regions_peak = 0;
  std::uint64_t ooms = 0;
  std::uint64_t unmatched_frees = 0;
  std::uint64_t cancelled_frees = 0;
  std::uint64_t live_twice = 0;  // allocations at an address that was still live: the order must be wrong
  bool several_threads = false;
};

class LivePool {
 public:
  void alloc(std::uint64_t address, const LiveBlock& block);
  // False: no block of ours is live there.
  bool free(std::uint64_t address);
  // The last free of this address did not happen. Returns the block as it was, or NULL.
  const LiveBlock* cancel_free(std::uint64_t address);
  void region(std::uint64_t address, std::uint64_t bytes, bool returned);
  void oom() { ++account_.ooms; }
  void used_by(std::uint32_t thread) {
    if (only_thread_ == 0) only_thread_ = thread;
    account_.several_threads |= thread != only_thread_;
  }

  std::size_t blocks() const { return blocks_.size(); }
  const PoolAccount& account() const { return account_; }
  // The largest hole between live blocks inside one region; 0 if no region is known.
  std::uint64_t largest_free() const;

  struct Holder {
    std::uint32_t op = 0;
    std::uint32_t owner = 0;
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
  };
  // By op (driver pools: by owner), largest first.
  std::vector<Holder> holders(std::size_t most) const;

 private:
  tsl::robin_map<std::uint64_t, LiveBlock, support::SecretHash> blocks_;
  std::map<std::uint64_t, std::uint64_t> regions_;  // address -> bytes
  PoolAccount account_;
  std::uint32_t only_thread_ = 0;
  // A free is announced before the call and may be reverted after it; other threads free in between.
  struct Freed {
    std::uint64_t address = 0;
    LiveBlock block;
  };
  static constexpr std::size_t kRecentFrees = 4096;
  std::vector<Freed> recent_frees_;  // a ring
  std::size_t next_free_ = 0;
};

}  // namespace vramscope::collect
