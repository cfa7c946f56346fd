// What every model of an allocator can do. A model is a state machine: the same calls give the same state on every machine.
#pragma once

#include <cstdint>
#include <functional>

#include "whatif/event.h"
#include "whatif/replay/device.h"

namespace vramscope::whatif {

struct Counters {
  Bytes reserved = 0, reserved_peak = 0;    // held from the device
  Bytes allocated = 0, allocated_peak = 0;  // in blocks that were handed out, with their rounding
  std::uint64_t flushes = 0;                // requests that were retried after all unused memory was returned
  std::uint64_t failures = 0;               // requests that ended in an out-of-memory error
};

// A part of a segment or region, for tests.
struct Piece {
  std::uint64_t address = 0;
  Bytes bytes = 0;
  bool used = false, mapped = true, first = false;  // first: a segment starts here
  bool held = false;                                // not used, and not free either
};

class Allocator {
 public:
  explicit Allocator(const DeviceOptions& device) : device_(device) {}
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  virtual ~Allocator() = default;

  // False: out of memory. Later calls for that block do nothing.
  virtual bool allocate(const Event& request) = 0;
  virtual void free(std::uint32_t block) = 0;
  virtual void hold(std::uint32_t /*block*/) {}
  // Everything but alloc, free and hold.
  virtual void control(const Event& /*event*/) {}
  // Only of a live block.
  virtual std::uint64_t address_of(std::uint32_t block) const = 0;
  virtual void for_each_piece(const std::function<void(const Piece&)>& /*visit*/) const {}

  const Counters& counters() const { return counters_; }
  const Device& device() const { return device_; }

 protected:
  void count_reserved(Bytes bytes) {
    counters_.reserved += bytes;
    if (counters_.reserved > counters_.reserved_peak) counters_.reserved_peak = counters_.reserved;
  }
  void count_allocated(Bytes bytes) {
    counters_.allocated += bytes;
    if (counters_.allocated > counters_.allocated_peak) counters_.allocated_peak = counters_.allocated;
  }

  Device device_;
  Counters counters_;
};

}  // namespace vramscope::whatif
