// Runs events through a model of an allocator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "whatif/event.h"
#include "whatif/replay/allocator.h"
#include "whatif/replay/bfc.h"
#include "whatif/replay/stream_pool.h"
#include "whatif/replay/torch_settings.h"

namespace vramscope::whatif {

// Which allocator, with which settings, on which device.
struct Scenario {
  enum class Kind : std::uint8_t { torch, bfc, stream_pool, uncached };
  Kind kind = Kind::torch;
  TorchSettings torch = {};
  BfcSettings bfc = {};
  StreamPoolSettings pool = {};
  DeviceOptions device = {};
  std::span<const char> optional = {};  // by block: not 0 if the program goes on without it when it is refused
  // The most that the allocator may hold: its own limit, which it tries to keep within.
  void set_limit(Bytes bytes);
};
std::unique_ptr<Allocator> make_allocator(const Scenario& scenario);

struct Outcome {
  Counters counters;
  std::uint64_t device_takes = 0, device_returns = 0;
  std::optional<std::uint64_t> failed_at;  // the first event whose request failed
  Bytes failed_bytes = 0;
  bool completed() const { return !failed_at; }
};

enum class OnFailure : std::uint8_t { stop, go_on };
// Ends early, with an outcome that means nothing, when the work of the device's options is exhausted.
Outcome replay(std::span<const Event> events, Allocator& allocator, OnFailure on_failure = OnFailure::stop,
               std::span<const char> optional = {});
Outcome replay(std::span<const Event> events, const Scenario& scenario, OnFailure on_failure = OnFailure::stop);

// Which of several equal free blocks is used depends on addresses that a replay cannot know. So: the reserved peak over several
// random orders of them.
struct Range {
  Bytes low = 0, median = 0, high = 0;
};
struct Spread {
  Range reserved;
  Outcome typical;           // with ascending addresses
  std::uint64_t orders = 0;  // how many were tried
  std::uint64_t failed = 0;  // orders in which a request failed
};
// `on_failure`: whether to try the other orders if a request fails in one.
Spread replay_orders(std::span<const Event> events, const Scenario& scenario, unsigned orders = 12,
                     OnFailure on_failure = OnFailure::go_on);

// How many orders to try: replays of long recordings take a second each, so that all of them together handle at most so many
// events.
struct OrderBudget {
  std::uint64_t events;
  unsigned fewest, most;
};
unsigned orders_for(std::size_t events, const OrderBudget& budget);

// The smallest capacity of the device with which no request fails, up to about 0.1 %. nullopt: even the reserved peak is not
// enough, because of a limit of the allocator itself.
struct Smallest {
  Bytes capacity = 0;
  Outcome outcome;  // with that capacity
};
std::optional<Smallest> smallest_capacity(std::span<const Event> events, const Scenario& scenario);

}  // namespace vramscope::whatif
