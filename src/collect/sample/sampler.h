// Samples the devices. One sample serves every process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collect/sample/nvml.h"
#include "collect/sample/proc.h"

namespace vramscope::collect {

struct DeviceReading {
  std::uint64_t time_us = 0;
  DeviceMemory memory;
  std::vector<DeviceProcess> processes;
  bool processes_known = false;

  // Used, but held by none of the processes; nullopt: the device does not report who holds what.
  std::optional<std::uint64_t> unattributed() const;
};

inline constexpr std::uint64_t kNotIdentifiable = ~std::uint64_t{0};

// Whether the driver's process ids are the same as ours: they are not in a container with its own PID namespace.
enum class DriverPids { ours, foreign };

// How a process is found in the devices' process lists: by its number. If the numbers belong to another namespace, its number
// is that of the only process that appeared on a device between the start of the recording and the first context of the process
// on it.
class DeviceIdentity {
 public:
  // `before`: the processes on each device when the recording started.
  DeviceIdentity(proc::Pid pid, std::vector<std::set<proc::Pid>> before, DriverPids driver_pids);

  // A context of the process on the device was recorded: every sample after the one at `last_sample_us` lists the process.
  void context_recorded(std::size_t device, std::uint64_t last_sample_us);
  // Called for each sample while the process is alive: a sample that lists the process may reveal its number.
  void learn(std::size_t device, const DeviceReading& reading);

  // Its bytes on the device; nullopt: it does not use the device; kNotIdentifiable: it may use it, but cannot be identified.
  std::optional<std::uint64_t> bytes(std::size_t device, const DeviceReading& reading) const;
  // Its number is known: a sample that does not list it means that it does not use the device.
  bool is_known() const { return !numbers_.empty(); }
  // Its number cannot be determined from the device: others appeared at the same time, or it was there before the recording
  // started.
  bool is_hidden(std::size_t device) const { return hidden_.contains(device); }

 private:
  std::vector<DeviceProcess> newcomers(std::size_t device, const DeviceReading& reading) const;

  std::set<proc::Pid> numbers_;  // numbers under which the driver may list it
  std::vector<std::set<proc::Pid>> before_;
  std::map<std::size_t, std::uint64_t> last_sample_without_;  // by device, once the process has a context on it
  std::map<std::size_t, int> samples_without_newcomer_;
  std::set<std::size_t> hidden_;
};

class Sampler {
 public:
  // The library is loaded for the first sample.
  explicit Sampler(double hz, DriverPids driver_pids = driver_pids_here()) : hz_(hz), driver_pids_(driver_pids) {}

  // Samples all devices if a sample is due. True if there is a new sample. `urgent`: a context is about to be created.
  bool sample(std::uint64_t now_us, bool urgent);
  // What sample() does with the values read from the devices, one entry per device.
  void keep(std::uint64_t now_us, std::vector<std::optional<DeviceReading>> readings);
  std::uint64_t last_sample_us() const { return last_us_; }
  std::size_t devices() const { return now_.size(); }
  const DeviceReading& now(std::size_t device) const { return now_[device]; }
  // The device as it was before this process used it.
  std::optional<DeviceReading> without(std::size_t device, const DeviceIdentity& process) const;
  DeviceIdentity identify(proc::Pid pid) const;
  // NVML's index of the device that the process calls `ordinal`, according to its CUDA_VISIBLE_DEVICES ("" = not set).
  std::size_t device_index(std::int64_t ordinal, const std::string& visible) const;
  double hz() const { return hz_; }

 private:
  static DriverPids driver_pids_here() { return proc::in_initial_pid_namespace() ? DriverPids::ours : DriverPids::foreign; }

  double hz_;
  DriverPids driver_pids_;
  std::unique_ptr<Nvml> nvml_;
  std::vector<std::string> uuids_;
  std::vector<DeviceReading> now_;
  std::vector<std::set<proc::Pid>> at_start_;     // processes in the first sample
  std::vector<std::vector<DeviceReading>> past_;  // per device, the last few seconds
  std::uint64_t last_us_ = 0;
};

}  // namespace vramscope::collect
