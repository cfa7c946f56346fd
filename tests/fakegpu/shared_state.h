// What the fake driver reports to the fake management library: bytes in use per process and device, in a file that all processes
// map.
//
// FAKEGPU_STATE names the file; without it the figures stay in the process. Entries of processes that are gone do not count.
#pragma once

#include <atomic>
#include <cstdint>

namespace fakegpu {

inline constexpr int kMaxDevices = 8;
inline constexpr int kMaxProcesses = 256;

struct ProcessEntry {
  std::atomic<std::int32_t> pid;  // 0 = free
  std::atomic<std::uint32_t> contexts[kMaxDevices];
  std::atomic<std::uint64_t> used[kMaxDevices];      // what the driver attributes to the process
  std::atomic<std::uint64_t> overhead[kMaxDevices];  // used on the device for it, attributed to nobody
};

struct SharedState {
  ProcessEntry processes[kMaxProcesses];
};

// Never NULL. Maps FAKEGPU_STATE at the first call.
SharedState* shared_state();
// The entry of this process, made at the first call (again in a forked child). Never NULL.
ProcessEntry* own_entry();
bool alive(std::int32_t pid);

int device_count();                                            // FAKEGPU_DEVICES, 1
std::uint64_t device_bytes();                                  // FAKEGPU_MEMORY, 8 GiB: as cuMemGetInfo reports it
inline constexpr std::uint64_t kReservedBytes = 615ull << 20;  // NVML's total is larger by this
std::uint64_t device_used(int device);                         // all processes, with overhead

std::uint64_t number_from_env(const char* name, std::uint64_t otherwise);

}  // namespace fakegpu
