// The memory below an allocator: how much there is, and at which addresses it is given out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "whatif/event.h"

namespace vramscope::whatif {

// One call of the driver: a segment or region, or pages of an expandable segment.
struct DeviceCall {
  bool returned = false;
  std::uint64_t address = 0;
  Bytes bytes = 0;
  friend bool operator==(const DeviceCall&, const DeviceCall&) = default;
};

// What models may look at beyond a constant number of blocks per event, in all replays of one question. A recording in which
// every request walks over all free blocks would keep its reader busy for days.
class Work {
 public:
  static constexpr std::uint64_t kLeast = 200'000'000, kPerEvent = 100;
  explicit Work(std::uint64_t events) : left_(kLeast + kPerEvent * events) {}
  // Also limits the events of all replays together, to those of a question about a recording of `events` or about a small one:
  // what a file claims to hold may be more than it can hold.
  static constexpr std::uint64_t kLeastReplayed = 20'000'000, kReplays = 400;
  void limit_replays(std::uint64_t events) { replayed_left_ = kLeastReplayed + kReplays * events; }

  void spend(std::uint64_t blocks) { left_ -= blocks < left_ ? blocks : left_; }
  void replay(std::uint64_t events) { replayed_left_ -= events < replayed_left_ ? events : replayed_left_; }
  bool exhausted() const { return left_ == 0 || replayed_left_ == 0; }

 private:
  std::uint64_t left_, replayed_left_ = kUnlimited;
};

struct DeviceOptions {
  Bytes capacity = kUnlimited;
  Bytes total = Bytes{80} << 30;  // what the card has; an expandable segment reserves addresses for 9/8 of it
  std::uint64_t seed = 0;         // 0: addresses ascend; otherwise they are in a random order
  bool keep_calls = false;
  // The calls of a recording: as long as the replay makes the same ones, it gets the same addresses.
  std::span<const DeviceCall> recorded = {};
  Work* work = nullptr;  // none: without a limit
};

class Device {
 public:
  explicit Device(const DeviceOptions& options);

  // A new piece of memory; nullopt if there is not enough.
  std::optional<std::uint64_t> take(Bytes bytes);
  void give_back(std::uint64_t address, Bytes bytes);
  // Addresses without memory, which map() provides: all of a mapping or nothing. The recording knows them only from the first
  // mapping there: `recorded_or` is asked for that.
  std::uint64_t reserve_addresses();
  std::uint64_t recorded_or(std::uint64_t address) const;
  bool map(std::uint64_t address, Bytes bytes);

  void spend(std::uint64_t blocks) const {
    if (options_.work != nullptr) options_.work->spend(blocks);
  }
  void begin_replay(std::uint64_t events) const {
    if (options_.work != nullptr) options_.work->replay(events);
  }
  bool exhausted() const { return options_.work != nullptr && options_.work->exhausted(); }

  Bytes total() const { return options_.total; }
  Bytes used() const { return used_; }
  std::uint64_t taken() const { return taken_; }
  std::uint64_t returned() const { return returned_; }
  const std::vector<DeviceCall>& calls() const { return calls_; }
  // The first call that is not the recorded one; nullopt if none differed so far.
  std::optional<std::uint64_t> differs_at() const { return differs_at_; }

 private:
  bool reserve(Bytes bytes);
  const DeviceCall* expected() const;
  void log(const DeviceCall& call);

  DeviceOptions options_;
  Bytes used_ = 0;
  std::uint64_t taken_ = 0, returned_ = 0, addresses_ = 0;
  std::vector<DeviceCall> calls_;
  std::optional<std::uint64_t> differs_at_;
};

}  // namespace vramscope::whatif
