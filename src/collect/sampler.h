// What the devices say, looked at often enough: one look serves every process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collect/nvml.h"
#include "collect/proc.h"

namespace vramscope::collect {

struct DeviceLook {
  std::uint64_t time_us = 0;
  DeviceMemory memory;
  std::vector<DeviceProcess> processes;
  bool processes_known = false;

  // Used, and held by none of the processes; nullopt: the device does not tell who holds what.
  std::optional<std::uint64_t> unattributed() const;
};

inline constexpr std::uint64_t kNotIdentifiable = ~std::uint64_t{0};

// How a process finds itself in the devices' process lists.
class DeviceIdentity {
 public:
  // `before`: who was on each device when the recording began.
  DeviceIdentity(proc::Pid pid, std::vector<std::set<proc::Pid>> before);
  // Its bytes on the device; nullopt: it is not there; kNotIdentifiable: it may be there and nobody can tell which.
  std::optional<std::uint64_t> bytes(std::size_t device, const DeviceLook& look) const;
  // By its number; otherwise by being the only one that came, which says nothing while it does not use the device.
  bool is_certain() const { return namesake_; }

 private:
  std::set<proc::Pid> pids_;
  std::vector<std::set<proc::Pid>> before_;
  bool namesake_;  // the driver's pids mean the same as ours
};

class Sampler {
 public:
  // The library is loaded at the first look.
  explicit Sampler(double hz) : hz_(hz) {}

  // Looks at all devices if it is time to. True when there is a new look. `urgent`: a context is about to be created.
  bool look(std::uint64_t now_us, bool urgent);
  std::size_t devices() const { return now_.size(); }
  const DeviceLook& now(std::size_t device) const { return now_[device]; }
  // The device as it was before this process came to it.
  std::optional<DeviceLook> without(std::size_t device, const DeviceIdentity& process) const;
  DeviceIdentity identify(proc::Pid pid) const;
  // NVML's index of the process' device `ordinal`, from its CUDA_VISIBLE_DEVICES ("" = not set).
  std::size_t device_index(std::int64_t ordinal, const std::string& visible) const;
  double hz() const { return hz_; }

 private:
  double hz_;
  std::unique_ptr<Nvml> nvml_;
  std::vector<std::string> uuids_;
  std::vector<DeviceLook> now_;
  std::vector<std::set<proc::Pid>> at_start_;  // who was there at the first look
  std::vector<std::vector<DeviceLook>> past_;  // per device, the last few seconds
  std::uint64_t last_us_ = 0;
};

}  // namespace vramscope::collect
