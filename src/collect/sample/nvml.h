// The few calls of NVIDIA's management library that are needed, found at run time. A machine without it has no devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace vramscope::collect {

struct DeviceMemory {
  std::uint64_t used = 0, free = 0, total = 0, reserved = 0;  // total = reserved + used + free
};

struct DeviceProcess {
  std::uint32_t pid = 0;    // in the initial PID namespace, regardless of ours
  std::uint64_t bytes = 0;  // all ones: not reported
};

class Nvml {
 public:
  // Loads and initializes the library, which takes tens of milliseconds and may load the CUDA driver. Uses the library named by
  // VRAMSCOPE_NVML if it is set.
  Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  // Why there are no devices, as text; empty if the library works.
  const std::string& problem() const { return problem_; }
  std::string driver_version() const;
  std::size_t devices() const { return handles_.size(); }
  std::string name(std::size_t device) const;
  std::string uuid(std::size_t device) const;
  // False: the device did not respond this time.
  bool memory(std::size_t device, DeviceMemory& out) const;
  bool processes(std::size_t device, std::vector<DeviceProcess>& out) const;

 private:
  struct Functions;
  std::unique_ptr<Functions> f_;
  void* library_ = nullptr;
  std::vector<void*> handles_;
  std::string problem_;
  bool five_fields_ = false;
};

}  // namespace vramscope::collect
