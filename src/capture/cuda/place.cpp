#include "capture/cuda/place.h"

#include <atomic>
#include <cstdint>

#include "capture/cuda/driver.h"
#include "record/recorder.h"

namespace vramscope::capture::cuda {

namespace {

struct Remembered {
  CUcontext context;
  std::int32_t device;
  std::uint32_t epoch;
};
constinit thread_local Remembered t_last{};

std::atomic<std::uint32_t> g_epoch = 1;  // changes when a context goes
std::atomic<std::uint64_t> g_measured;   // bit per device whose context was recorded

bool first_on(int device) {
  const std::uint64_t bit = 1ull << device;
  if ((g_measured.load(std::memory_order_relaxed) & bit) != 0) return false;
  return (g_measured.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

void record_memory_of_current(CUcontext context, int device) {
  std::size_t free_bytes = 0, total_bytes = 0;
  if (VS_REAL(cuMemGetInfo_v2)(&free_bytes, &total_bytes) == kSuccess)
    record::context(device, free_bytes, total_bytes, reinterpret_cast<std::uint64_t>(context));
}

}  // namespace

Place current_place() {
  CUcontext context = nullptr;
  if (VS_REAL(cuCtxGetCurrent)(&context) != kSuccess || context == nullptr) return {nullptr, -1};
  const std::uint32_t epoch = g_epoch.load(std::memory_order_acquire);
  if (__builtin_expect(t_last.context == context && t_last.epoch == epoch, 1)) return {context, t_last.device};
  CUdevice device = -1;
  if (VS_REAL(cuCtxGetDevice)(&device) != kSuccess || !usable(device)) return {context, -1};
  t_last = {context, device, epoch};
  if (first_on(device)) record_memory_of_current(context, device);
  return {context, device};
}

void context_created(CUcontext context, int device) {
  if (!usable(device)) return;
  first_on(device);
  if (VS_REAL(cuCtxPushCurrent_v2)(context) != kSuccess) return;
  record_memory_of_current(context, device);
  CUcontext popped = nullptr;
  VS_REAL(cuCtxPopCurrent_v2)(&popped);
}

void forget_places() { g_epoch.fetch_add(1, std::memory_order_release); }

}  // namespace vramscope::capture::cuda
