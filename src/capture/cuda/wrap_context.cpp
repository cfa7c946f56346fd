// Contexts: the size of each is measured when it is created, and everything allocated in it is freed with it.
#include <atomic>

#include "capture/cuda/driver.h"
#include "capture/cuda/events.h"
#include "capture/cuda/place.h"

using namespace vramscope::capture::cuda;
using blocks::Block;
using blocks::Space;
namespace record = vramscope::record;

namespace {

std::atomic<std::int32_t> g_retained[kMaxDevices];  // cuDevicePrimaryCtxRetain calls that we saw
std::atomic<std::uint64_t> g_primary[kMaxDevices];  // the primary context, where we saw it

// What is freed with a context: everything with its handle. With a device reset: also the blocks of pools on it.
struct Doomed {
  std::uint64_t context;
  int reset_device;  // -1 = no reset
  std::uint64_t count;

  bool has(const Block& block) const {
    if (block.space == Space::mapping || block.space == Space::handle || block.space == Space::reservation) return false;
    if (reset_device >= 0 && block.device == reset_device && (block.flags & blocks::kPooled) != 0) return true;
    return context != 0 && block.context == context && (block.flags & blocks::kPooled) == 0;
  }
};

bool announce(Block& block, void* data) {
  auto& doomed = *static_cast<Doomed*>(data);
  if (!doomed.has(block) || (block.flags & blocks::kDying) != 0) return true;
  block.flags |= blocks::kDying;
  record_free(block);
  ++doomed.count;
  return true;
}
bool bury(Block& block, void* data) { return !static_cast<Doomed*>(data)->has(block) || (block.flags & blocks::kDying) == 0; }
bool revive(Block& block, void* data) {
  if (!static_cast<Doomed*>(data)->has(block) || (block.flags & blocks::kDying) == 0) return true;
  block.flags = static_cast<std::uint8_t>(block.flags & ~blocks::kDying);
  cancel_free(block);
  return true;
}

void begin_end_of(Doomed& doomed, int device) {
  record::mark(record::MarkKind::process, 0, "context ends", device, nullptr);
  blocks::update_all(announce, &doomed);
}

void finish(Doomed& doomed, bool gone) {
  blocks::update_all(gone ? bury : revive, &doomed);
  if (gone) forget_places();
}

template <typename Forward>
CUresult creating(CUcontext* out, CUdevice device, Forward forward) {
  if (!recording()) return forward();
  const CUresult result = forwarded(forward);
  if (result == kSuccess) context_created(*out, device);
  return result;
}

bool primary_is_active(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  return VS_REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) == kSuccess && active != 0;
}

// The next one is measured again, even if it gets the same handle.
void forget_primary(CUdevice device) {
  g_retained[device].store(0, std::memory_order_relaxed);
  g_primary[device].store(0, std::memory_order_relaxed);
}

// Whether this is the last release is known only after the call; if it seems so, the frees are recorded before it and reverted
// if the context survives.
template <typename Forward>
CUresult releasing(CUdevice device, Forward forward) {
  if (!recording() || !usable(device)) return forward();
  const bool looks_last = g_retained[device].fetch_sub(1, std::memory_order_relaxed) <= 1;
  Doomed doomed{g_primary[device].load(std::memory_order_relaxed), -1, 0};
  if (looks_last) begin_end_of(doomed, device);
  const CUresult result = forwarded(forward);
  const bool gone = result == kSuccess && !primary_is_active(device);
  if (gone && !looks_last) begin_end_of(doomed, device);
  if (looks_last || gone) finish(doomed, gone);
  if (gone) forget_primary(device);
  if (result != kSuccess) g_retained[device].fetch_add(1, std::memory_order_relaxed);
  return result;
}

template <typename Forward>
CUresult resetting(CUdevice device, Forward forward) {
  if (!recording() || !usable(device)) return forward();
  Doomed doomed{g_primary[device].load(std::memory_order_relaxed), device, 0};
  begin_end_of(doomed, device);
  const CUresult result = forwarded(forward);
  finish(doomed, result == kSuccess);
  if (result == kSuccess) forget_primary(device);
  return result;
}

}  // namespace

extern "C" {

CUresult vs_cuCtxCreate_v2(CUcontext* out, unsigned flags, CUdevice device) {
  return creating(out, device, [=] { return VS_REAL(cuCtxCreate_v2)(out, flags, device); });
}

CUresult vs_cuCtxCreate_v3(CUcontext* out, void* affinity, int count, unsigned flags, CUdevice device) {
  return creating(out, device, [=] { return VS_REAL(cuCtxCreate_v3)(out, affinity, count, flags, device); });
}

CUresult vs_cuCtxCreate_v4(CUcontext* out, void* params, unsigned flags, CUdevice device) {
  return creating(out, device, [=] { return VS_REAL(cuCtxCreate_v4)(out, params, flags, device); });
}

CUresult vs_cuCtxDestroy_v2(CUcontext context) {
  const auto forward = [=] { return VS_REAL(cuCtxDestroy_v2)(context); };
  if (!recording() || context == nullptr) return forward();
  Doomed doomed{reinterpret_cast<std::uint64_t>(context), -1, 0};
  begin_end_of(doomed, -1);
  const CUresult result = forwarded(forward);
  finish(doomed, result == kSuccess);
  return result;
}

CUresult vs_cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  const auto forward = [=] { return VS_REAL(cuDevicePrimaryCtxRetain)(out, device); };
  if (!recording() || !usable(device)) return forward();
  const CUresult result = forwarded(forward);
  if (result != kSuccess || out == nullptr) return result;
  g_retained[device].fetch_add(1, std::memory_order_relaxed);
  const auto context = reinterpret_cast<std::uint64_t>(*out);
  const bool known = g_primary[device].exchange(context, std::memory_order_relaxed) == context;
  if (!known) context_created(*out, device);
  return result;
}

CUresult vs_cuDevicePrimaryCtxRelease(CUdevice device) {
  return releasing(device, [=] { return VS_REAL(cuDevicePrimaryCtxRelease)(device); });
}

CUresult vs_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return releasing(device, [=] { return VS_REAL(cuDevicePrimaryCtxRelease_v2)(device); });
}

CUresult vs_cuDevicePrimaryCtxReset(CUdevice device) {
  return resetting(device, [=] { return VS_REAL(cuDevicePrimaryCtxReset)(device); });
}

CUresult vs_cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return resetting(device, [=] { return VS_REAL(cuDevicePrimaryCtxReset_v2)(device); });
}
}
