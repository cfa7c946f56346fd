#include "collect/sample/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <cstring>
#include <type_traits>

namespace vramscope::collect {

namespace {

using Return = int;
constexpr Return kSuccess = 0;
constexpr Return kInsufficientSize = 7;

struct MemoryV1 {
  unsigned long long total, free, used;  // used includes reserved
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | (2u << 24);

struct ProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
// What some drivers of the 535 series fill in behind the same symbol.
struct ProcessInfo5 {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
  unsigned long long protected_bytes;
};

}  // namespace

struct Nvml::Functions {
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle)(unsigned, void**) = nullptr;
  Return (*memory_v2)(void*, MemoryV2*) = nullptr;
  Return (*memory_v1)(void*, MemoryV1*) = nullptr;
  Return (*processes)(void*, unsigned*, void*) = nullptr;
  Return (*device_name)(void*, char*, unsigned) = nullptr;
  Return (*device_uuid)(void*, char*, unsigned) = nullptr;
  Return (*version)(char*, unsigned) = nullptr;
};

Nvml::Nvml() : f_(std::make_unique<Functions>()) {
  const char* chosen = getenv("VRAMSCOPE_NVML");
  library_ = dlopen(chosen != nullptr && *chosen != '\0' ? chosen : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    problem_ = "libnvidia-ml.so.1 was not found";
    return;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library_, name));
    return function != nullptr;
  };
  const bool complete = find(f_->init, "nvmlInit_v2") && find(f_->shutdown, "nvmlShutdown") &&
                        find(f_->count, "nvmlDeviceGetCount_v2") && find(f_->handle, "nvmlDeviceGetHandleByIndex_v2") &&
                        find(f_->memory_v1, "nvmlDeviceGetMemoryInfo");
  find(f_->memory_v2, "nvmlDeviceGetMemoryInfo_v2");
  find(f_->processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  find(f_->device_name, "nvmlDeviceGetName");
  find(f_->device_uuid, "nvmlDeviceGetUUID");
  find(f_->version, "nvmlSystemGetDriverVersion");
  five_fields_ = dlsym(library_, "nvmlDeviceGetConfComputeMemSizeInfo") != nullptr &&
                 dlsym(library_, "nvmlDeviceGetRunningProcessDetailList") == nullptr;
  const Return begun = complete ? f_->init() : -1;
  if (begun != kSuccess) {
    problem_ = complete ? fmt::format("NVML did not start (error {})", begun) : "libnvidia-ml.so.1 is too old";
    return;
  }
  unsigned count = 0;
  f_->count(&count);
  for (unsigned i = 0; i < count; ++i) {
    void* handle = nullptr;
    if (f_->handle(i, &handle) == kSuccess) handles_.push_back(handle);
  }
  if (handles_.empty()) problem_ = "NVML lists no devices";
}

Nvml::~Nvml() {
  if (library_ == nullptr) return;
  if (!handles_.empty()) f_->shutdown();
  dlclose(library_);
}

std::string Nvml::driver_version() const {
  char text[96] = "";
  if (library_ != nullptr && f_->version != nullptr && f_->version(text, sizeof text) != kSuccess) return {};
  return text;
}

std::string Nvml::name(std::size_t device) const {
  char text[128] = "";
  if (f_->device_name == nullptr || f_->device_name(handles_[device], text, sizeof text) != kSuccess) return {};
  return text;
}

std::string Nvml::uuid(std::size_t device) const {
  char text[128] = "";
  if (f_->device_uuid == nullptr || f_->device_uuid(handles_[device], text, sizeof text) != kSuccess) return {};
  return text;
}

bool Nvml::memory(std::size_t device, DeviceMemory& out) const {
  MemoryV2 v2{};
  v2.version = kMemoryV2;
  if (f_->memory_v2 != nullptr && f_->memory_v2(handles_[device], &v2) == kSuccess) {
    out = {v2.used, v2.free, v2.total, v2.reserved};
    return true;
  }
  MemoryV1 v1{};
  if (f_->memory_v1(handles_[device], &v1) != kSuccess) return false;
  out = {v1.used, v1.free, v1.total, 0};
  return true;
}

bool Nvml::processes(std::size_t device, std::vector<DeviceProcess>& out) const {
  out.clear();
  if (f_->processes == nullptr) return false;
  const std::size_t stride = five_fields_ ? sizeof(ProcessInfo5) : sizeof(ProcessInfo);
  std::vector<std::byte> buffer;
  unsigned count = 16;
  Return result = kInsufficientSize;
  // The list may grow between querying its length and fetching it.
  for (int attempt = 0; attempt < 4 && result == kInsufficientSize; ++attempt) {
    count += 16;
    buffer.assign(count * sizeof(ProcessInfo5), std::byte{0});
    result = f_->processes(handles_[device], &count, buffer.data());
  }
  if (result != kSuccess) return false;
  for (unsigned i = 0; i < count && (i + 1) * stride <= buffer.size(); ++i) {
    ProcessInfo info;  // the five-field form starts with the same fields
    std::memcpy(&info, buffer.data() + i * stride, sizeof info);
    out.push_back({info.pid, info.used});
  }
  return true;
}

}  // namespace vramscope::collect
