#include "whatif/replay/replay.h"

#include <algorithm>
#include <array>
#include <vector>

#include "whatif/replay/torch.h"
#include "whatif/replay/uncached.h"

namespace vramscope::whatif {

void Scenario::set_limit(Bytes bytes) {
  torch.limit = bytes;
  bfc.limit = bytes;
  if (kind == Kind::stream_pool || kind == Kind::uncached) device.capacity = std::min(device.capacity, bytes);
}

std::unique_ptr<Allocator> make_allocator(const Scenario& scenario) {
  switch (scenario.kind) {
    case Scenario::Kind::torch:
      return std::make_unique<TorchAllocator>(scenario.torch, scenario.device);
    case Scenario::Kind::bfc:
      return std::make_unique<BfcAllocator>(scenario.bfc, scenario.device);
    case Scenario::Kind::stream_pool:
      return std::make_unique<StreamPool>(scenario.pool, scenario.device);
    case Scenario::Kind::uncached:
      break;
  }
  return std::make_unique<Uncached>(scenario.device);
}

Outcome replay(std::span<const Event> events, Allocator& allocator, OnFailure on_failure, std::span<const char> optional) {
  Outcome out;
  allocator.device().begin_replay(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (allocator.device().exhausted()) break;
    if (event.what == What::alloc) {
      if (event.bytes <= kLargestDevice && allocator.allocate(event)) continue;
      if (event.block < optional.size() && optional[event.block] != 0) continue;
      if (out.completed()) {
        out.failed_at = i;
        out.failed_bytes = event.bytes;
      }
      if (on_failure == OnFailure::stop) break;
    } else if (event.what == What::free) {
      allocator.free(event.block);
    } else if (event.what == What::hold) {
      allocator.hold(event.block);
    } else {
      allocator.control(event);
    }
  }
  out.counters = allocator.counters();
  out.device_takes = allocator.device().taken();
  out.device_returns = allocator.device().returned();
  return out;
}

Outcome replay(std::span<const Event> events, const Scenario& scenario, OnFailure on_failure) {
  return replay(events, *make_allocator(scenario), on_failure, scenario.optional);
}

unsigned orders_for(std::size_t events, const OrderBudget& budget) {
  const std::uint64_t affordable = budget.events / std::max<std::uint64_t>(events, 1);
  return static_cast<unsigned>(std::clamp<std::uint64_t>(affordable, budget.fewest, budget.most));
}

namespace {

Outcome replay_order(std::span<const Event> events, const Scenario& scenario, unsigned seed) {
  Scenario shuffled = scenario;
  shuffled.device.seed = seed;
  return replay(events, shuffled);
}

// Pools of the driver have one range of addresses; without a cache there is no choice.
unsigned orders_of(const Scenario& scenario, unsigned orders) {
  const bool one = scenario.kind == Scenario::Kind::stream_pool || scenario.kind == Scenario::Kind::uncached;
  return one ? 1 : std::max(1u, orders);
}

}  // namespace

Spread replay_orders(std::span<const Event> events, const Scenario& scenario, unsigned orders, OnFailure on_failure) {
  Spread out;
  std::vector<Bytes> peaks;
  for (unsigned seed = 0; seed < orders_of(scenario, orders); ++seed) {
    const Outcome outcome = replay_order(events, scenario, seed);
    if (seed == 0) out.typical = outcome;
    if (!outcome.completed()) ++out.failed;
    peaks.push_back(outcome.counters.reserved_peak);
    if (out.failed != 0 && on_failure == OnFailure::stop) break;
  }
  out.orders = peaks.size();
  std::ranges::sort(peaks);
  out.reserved = {peaks.front(), peaks[peaks.size() / 2], peaks.back()};
  if (scenario.kind == Scenario::Kind::stream_pool) {
    out.reserved.low = static_cast<Bytes>(static_cast<double>(peaks.front()) * StreamPoolSettings::kLow);
    out.reserved.high = static_cast<Bytes>(static_cast<double>(peaks.back()) * StreamPoolSettings::kHigh);
  }
  return out;
}

std::optional<Smallest> smallest_capacity(std::span<const Event> events, const Scenario& scenario) {
  const auto with = [&](Bytes capacity) {
    Scenario limited = scenario;
    limited.device.capacity = capacity;
    // A pool that takes its limit at once has the capacity as its limit.
    if (scenario.kind == Scenario::Kind::bfc && !scenario.bfc.growth) limited.bfc.limit = capacity;
    return replay(events, limited);
  };
  Scenario free = scenario;
  if (scenario.kind == Scenario::Kind::bfc && !scenario.bfc.growth) free.bfc.growth = true;
  free.device.capacity = kUnlimited;
  const Outcome unlimited = replay(events, free);
  if (!unlimited.completed()) return std::nullopt;
  Bytes high = std::max<Bytes>(unlimited.counters.reserved_peak, 1), low = unlimited.counters.allocated_peak / 2;
  const Bytes enough = std::max<Bytes>(256, high >> 11);
  Smallest out{high, with(high)};
  // One region may need more than several did.
  for (int tries = 0; !out.outcome.completed() && tries < 8; ++tries) {
    low = high;
    high += high / 4;
    out = {high, with(high)};
  }
  if (!out.outcome.completed()) return std::nullopt;
  while (high - low > enough) {
    const Bytes middle = low + (high - low) / 2;
    const Outcome outcome = with(middle);
    (outcome.completed() ? high : low) = middle;
    if (outcome.completed()) out = {middle, outcome};
  }
  return out;
}

}  // namespace vramscope::whatif
