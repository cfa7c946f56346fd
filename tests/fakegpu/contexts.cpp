#include "driver.h"

using namespace fakegpu;

namespace {

CUresult create(CUcontext* out, CUdevice device, bool primary) {
  Driver& state = driver();
  if (!state.initialized) return kNotInitialized;
  if (out == nullptr) return kInvalidValue;
  if (!known_device(device)) return kInvalidDevice;
  if (!state.devices[static_cast<std::size_t>(device)].charge(kContextBytes, kContextOverhead)) return kOutOfMemory;
  auto context = std::make_unique<Context>(Context{.device = device, .primary = primary, .opened = {}});
  *out = context.get();
  ++own_entry()->contexts[device];
  state.contexts.emplace(context.get(), std::move(context));
  return kSuccess;
}

CUresult create_current(CUcontext* out, CUdevice device) {
  std::scoped_lock guard(driver().lock);
  const CUresult result = create(out, device, false);
  if (result == kSuccess) context_stack().push_back(static_cast<Context*>(*out));
  return result;
}

void drop_primary(std::size_t device) {
  destroy_context(driver().primary[device]);
  driver().primary[device] = nullptr;
}

CUresult release_primary(CUdevice device) {
  std::scoped_lock guard(driver().lock);
  if (!known_device(device)) return kInvalidDevice;
  const auto index = static_cast<std::size_t>(device);
  if (driver().primary_refs[index] == 0) return kInvalidContext;
  if (--driver().primary_refs[index] == 0) drop_primary(index);
  return kSuccess;
}

CUresult reset_primary(CUdevice device) {
  std::scoped_lock guard(driver().lock);
  if (!known_device(device)) return kInvalidDevice;
  const auto index = static_cast<std::size_t>(device);
  if (driver().primary[index] != nullptr) drop_primary(index);
  driver().primary_refs[index] = 0;
  Driver& state = driver();
  std::erase_if(state.pieces,
                [&](const auto& item) { return item.second.kind == Piece::Kind::pooled && item.second.device == device; });
  for (auto& [key, pool] : state.pools) {
    if (pool->device != device) continue;
    pool->used = 0;
    settle(*pool, 0);
  }
  return kSuccess;
}

}  // namespace

extern "C" {

CUresult cuCtxCreate_v2(CUcontext* out, unsigned, CUdevice device) {
  FAKE_CALL(cuCtxCreate_v2);
  return create_current(out, device);
}

CUresult cuCtxCreate_v3(CUcontext* out, void*, int, unsigned, CUdevice device) {
  FAKE_CALL(cuCtxCreate_v3);
  return create_current(out, device);
}

CUresult cuCtxCreate_v4(CUcontext* out, void*, unsigned, CUdevice device) {
  FAKE_CALL(cuCtxCreate_v4);
  return create_current(out, device);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  FAKE_CALL(cuCtxDestroy_v2);
  std::scoped_lock guard(driver().lock);
  const auto found = driver().contexts.find(static_cast<Context*>(context));
  if (found == driver().contexts.end() || found->second->primary) return kInvalidContext;
  destroy_context(found->first);
  return kSuccess;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  FAKE_CALL(cuDevicePrimaryCtxRetain);
  std::scoped_lock guard(driver().lock);
  if (!known_device(device)) return kInvalidDevice;
  const auto index = static_cast<std::size_t>(device);
  CUcontext context = driver().primary[index];
  if (context == nullptr) {
    if (const CUresult result = create(&context, device, true); result != kSuccess) return result;
    driver().primary[index] = static_cast<Context*>(context);
  }
  ++driver().primary_refs[index];
  if (out != nullptr) *out = context;
  return kSuccess;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  FAKE_CALL(cuDevicePrimaryCtxRelease);
  return release_primary(device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  FAKE_CALL(cuDevicePrimaryCtxRelease_v2);
  return release_primary(device);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  FAKE_CALL(cuDevicePrimaryCtxReset);
  return reset_primary(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  FAKE_CALL(cuDevicePrimaryCtxReset_v2);
  return reset_primary(device);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  std::scoped_lock guard(driver().lock);
  if (!known_device(device)) return kInvalidDevice;
  if (flags != nullptr) *flags = 0;
  if (active != nullptr) *active = driver().primary[static_cast<std::size_t>(device)] != nullptr;
  return kSuccess;
}

CUresult cuCtxGetCurrent(CUcontext* out) {
  *out = current();
  return kSuccess;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  context_stack().clear();
  if (context != nullptr) context_stack().push_back(static_cast<Context*>(context));
  return kSuccess;
}

CUresult cuCtxGetDevice(CUdevice* out) {
  FAKE_CALL(cuCtxGetDevice);
  if (current() == nullptr) return kInvalidContext;
  *out = current()->device;
  return kSuccess;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  context_stack().push_back(static_cast<Context*>(context));
  return kSuccess;
}

CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  if (current() == nullptr) return kInvalidContext;
  if (out != nullptr) *out = current();
  context_stack().pop_back();
  return kSuccess;
}

CUresult cuCtxSynchronize() {
  std::scoped_lock guard(driver().lock);
  for (auto& [key, pool] : driver().pools) settle(*pool, pool->threshold);
  return kSuccess;
}
}
