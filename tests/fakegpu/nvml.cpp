// Fake libnvidia-ml.so.1: what the fake drivers of all processes wrote into the shared file.
//
//   FAKEGPU_NVML_PID_OFFSET   added to each pid, as in a container that does not share the host's pid namespace
//   FAKEGPU_NVML_FAIL         1: nvmlInit fails (driver not loaded)
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "shared_state.h"

using namespace fakegpu;

namespace {

using nvmlReturn = int;
using nvmlDevice = void*;
constexpr nvmlReturn kOk = 0, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6, kTooSmall = 7, kNotLoaded = 9;

struct MemoryV1 {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance;
  unsigned compute_instance;
};

int index_of(nvmlDevice device) { return static_cast<int>(reinterpret_cast<std::intptr_t>(device)) - 1; }
bool valid(nvmlDevice device) { return index_of(device) >= 0 && index_of(device) < device_count(); }

nvmlReturn copy_text(const char* text, char* out, unsigned bytes) {
  if (std::strlen(text) + 1 > bytes) return kTooSmall;
  std::memcpy(out, text, std::strlen(text) + 1);
  return kOk;
}

nvmlReturn processes(nvmlDevice device, unsigned* count, Process* out) {
  if (!valid(device) || count == nullptr) return kInvalidArgument;
  const auto offset = static_cast<unsigned>(number_from_env("FAKEGPU_NVML_PID_OFFSET", 0));
  unsigned found = 0;
  for (const ProcessEntry& entry : shared_state()->processes) {
    const std::int32_t pid = entry.pid.load();
    if (!alive(pid) || entry.contexts[index_of(device)].load() == 0) continue;
    if (found < *count && out != nullptr) {
      out[found] = {static_cast<unsigned>(pid) + offset, entry.used[index_of(device)].load(), ~0u, ~0u};
    }
    ++found;
  }
  const bool fits = found <= *count;
  *count = found;
  return fits ? kOk : kTooSmall;
}

}  // namespace

#define NVML extern "C" __attribute__((visibility("default")))

NVML nvmlReturn nvmlInit_v2() { return number_from_env("FAKEGPU_NVML_FAIL", 0) != 0 ? kNotLoaded : kOk; }
NVML nvmlReturn nvmlInitWithFlags(unsigned) { return nvmlInit_v2(); }
NVML nvmlReturn nvmlShutdown() { return kOk; }
NVML const char* nvmlErrorString(nvmlReturn code) { return code == kOk ? "Success" : "Fake error"; }
NVML nvmlReturn nvmlSystemGetDriverVersion(char* out, unsigned bytes) { return copy_text("580.00.fake", out, bytes); }
NVML nvmlReturn nvmlSystemGetNVMLVersion(char* out, unsigned bytes) { return copy_text("13.580.00.fake", out, bytes); }
NVML nvmlReturn nvmlSystemGetCudaDriverVersion_v2(int* out) {
  *out = static_cast<int>(number_from_env("FAKEGPU_DRIVER", 13000));
  return kOk;
}

NVML nvmlReturn nvmlDeviceGetCount_v2(unsigned* out) {
  *out = static_cast<unsigned>(device_count());
  return kOk;
}

NVML nvmlReturn nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice* out) {
  if (static_cast<int>(index) >= device_count()) return kInvalidArgument;
  *out = reinterpret_cast<nvmlDevice>(static_cast<std::intptr_t>(index) + 1);
  return kOk;
}

NVML nvmlReturn nvmlDeviceGetUUID(nvmlDevice device, char* out, unsigned bytes) {
  if (!valid(device)) return kInvalidArgument;
  char text[48];
  std::snprintf(text, sizeof text, "GPU-00000000-0000-0000-0000-%012d", index_of(device));
  return copy_text(text, out, bytes);
}

NVML nvmlReturn nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice* out) {
  for (int index = 0; index < device_count(); ++index) {
    char text[48];
    std::snprintf(text, sizeof text, "GPU-00000000-0000-0000-0000-%012d", index);
    if (std::strcmp(text, uuid) == 0) return nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(index), out);
  }
  return kNotFound;
}

NVML nvmlReturn nvmlDeviceGetName(nvmlDevice device, char* out, unsigned bytes) {
  return valid(device) ? copy_text("Fake GPU", out, bytes) : kInvalidArgument;
}

NVML nvmlReturn nvmlDeviceGetIndex(nvmlDevice device, unsigned* out) {
  if (!valid(device)) return kInvalidArgument;
  *out = static_cast<unsigned>(index_of(device));
  return kOk;
}

NVML nvmlReturn nvmlDeviceGetMemoryInfo(nvmlDevice device, MemoryV1* out) {
  if (!valid(device) || out == nullptr) return kInvalidArgument;
  const std::uint64_t used = std::min(device_used(index_of(device)), device_bytes());
  *out = {device_bytes() + kReservedBytes, device_bytes() - used, used + kReservedBytes};
  return kOk;
}

NVML nvmlReturn nvmlDeviceGetMemoryInfo_v2(nvmlDevice device, MemoryV2* out) {
  if (!valid(device) || out == nullptr || out->version != (sizeof(MemoryV2) | 2u << 24)) return kInvalidArgument;
  const std::uint64_t used = std::min(device_used(index_of(device)), device_bytes());
  out->total = device_bytes() + kReservedBytes;
  out->reserved = kReservedBytes;
  out->free = device_bytes() - used;
  out->used = used;
  return kOk;
}

NVML nvmlReturn nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice device, unsigned* count, Process* out) {
  return processes(device, count, out);
}

NVML nvmlReturn nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice device, unsigned* count, Process*) {
  if (!valid(device) || count == nullptr) return kInvalidArgument;
  *count = 0;
  return kOk;
}

NVML nvmlReturn nvmlDeviceGetUtilizationRates(nvmlDevice, void*) { return kNotSupported; }
