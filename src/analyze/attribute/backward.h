// Where the backward pass of each step starts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "analyze/attribute/scopes.h"
#include "analyze/index/scan.h"

namespace vramscope::analyze {

// The index of the step that contains a position; steps.size() if none does.
std::size_t step_of(std::span<const StepRow> steps, std::uint64_t pos);

// Each device goes through a step at its own pace, so if there are several, each has a slot of its own. Slot 0 is for all of them
// together.
class DeviceSlots {
 public:
  explicit DeviceSlots(const Store& draft) {
    std::map<std::int64_t, std::size_t> devices;
    const auto& pools = draft.dictionaries().pools;
    for (const auto& pool : pools)
      if (pool.device >= 0 && pool.level == trace::Level::tensor) devices.try_emplace(pool.device, devices.size() + 1);
    of_pool_.assign(pools.size(), 0);
    if (devices.size() < 2) return;
    count_ = devices.size() + 1;
    for (std::size_t i = 0; i < pools.size(); ++i)
      if (auto found = devices.find(pools[i].device); found != devices.end()) of_pool_[i] = found->second;
  }
  std::size_t count() const { return count_; }
  std::size_t of(const Kind& kind) const { return kind.pool < of_pool_.size() ? of_pool_[kind.pool] : 0; }

 private:
  std::vector<std::size_t> of_pool_;
  std::size_t count_ = 1;
};

class BackwardPasses {
 public:
  using StageOf = std::function<Stage(std::uint64_t alloc, const Kind& kind)>;
  BackwardPasses(const Store& draft, const Columns& columns, const Scopes& scopes, const StageOf& stage_of, unsigned threads);
  // The start of the backward pass that a block of step `s` waits for; kNever if there is none.
  std::uint64_t start(std::size_t s, const Kind& kind, std::uint64_t birth) const;

 private:
  const Store& draft_;
  DeviceSlots slots_;
  std::vector<std::uint64_t> turns_;   // by step, then slot
  std::vector<std::uint64_t> passes_;  // as they were reported
};

}  // namespace vramscope::analyze
