#include "driver.h"

#include <algorithm>
#include <cstring>

namespace fakegpu {

Driver::Driver() : graph_reserved(static_cast<std::size_t>(device_count())) {
  for (int device = 0; device < device_count(); ++device) {
    devices.emplace_back(device);
    primary.push_back(nullptr);
    primary_refs.push_back(0);
    auto pool = std::make_unique<Pool>(Pool{.device = device});
    default_pool.push_back(pool.get());
    current_pool.push_back(pool.get());
    pools.emplace(pool.get(), std::move(pool));
  }
}

Driver& driver() {
  static auto* state = new Driver;  // outlives exit handlers
  return *state;
}

std::vector<Context*>& context_stack() {
  static thread_local std::vector<Context*> stack;
  return stack;
}

Context* current() { return context_stack().empty() ? nullptr : context_stack().back(); }

bool known_device(int device) { return device >= 0 && device < device_count(); }

void destroy_context(Context* context) {
  Driver& state = driver();
  DeviceMemory& memory = state.devices[static_cast<std::size_t>(context->device)];
  std::erase_if(state.pieces, [&](const auto& item) {
    const Piece& piece = item.second;
    if (piece.context != context) return false;
    if (piece.kind == Piece::Kind::linear) memory.release(item.first);
    return true;
  });
  std::erase_if(state.arrays, [&](const auto& item) {
    if (item.second.context != context) return false;
    if (item.second.address != 0) memory.release(item.second.address);
    return true;
  });
  std::erase_if(state.host, [&](const auto& item) { return item.second.context == context; });  // the pages stay: tests may look
  memory.refund(kContextBytes, kContextOverhead);
  --own_entry()->contexts[context->device];
  std::erase(context_stack(), context);
  state.contexts.erase(context);
}

Stream* stream_of(CUstream stream) {
  const auto found = driver().streams.find(static_cast<Stream*>(stream));
  return found == driver().streams.end() ? nullptr : found->second.get();
}

}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

CUresult cuInit(unsigned) {
  FAKE_CALL(cuInit);
  std::scoped_lock guard(driver().lock);
  driver().initialized = true;
  return device_count() == 0 ? 100 : kSuccess;
}

CUresult cuDriverGetVersion(int* out) {
  *out = static_cast<int>(number_from_env("FAKEGPU_DRIVER", 13000));
  return kSuccess;
}

CUresult cuDeviceGetCount(int* out) {
  *out = device_count();
  return kSuccess;
}

CUresult cuDeviceGet(CUdevice* out, int ordinal) {
  if (!known_device(ordinal)) return kInvalidDevice;
  *out = ordinal;
  return kSuccess;
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  if (!known_device(device) || bytes <= 0) return kInvalidDevice;
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(bytes));
  name[bytes - 1] = '\0';
  return kSuccess;
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  if (!known_device(device)) return kInvalidDevice;
  *bytes = device_bytes();
  return kSuccess;
}

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  FAKE_CALL(cuMemGetInfo_v2);
  if (current() == nullptr) return kInvalidContext;
  const std::uint64_t used = device_used(current()->device);
  if (free_bytes != nullptr) *free_bytes = device_bytes() - std::min(used, device_bytes());
  if (total_bytes != nullptr) *total_bytes = device_bytes();
  return kSuccess;
}

CUresult cuMemGetInfo(std::uint32_t* free_bytes, std::uint32_t* total_bytes) {
  *free_bytes = *total_bytes = 0x7fff'ffff;
  return kSuccess;
}

// The names of 2.x: 32-bit pointers. Made-up figures that no 64-bit wrapper could produce.
CUresult cuMemAlloc(std::uint32_t* out, std::uint32_t) {
  FAKE_CALL(cuMemAlloc);
  *out = 0x2000'0000;
  return kSuccess;
}

CUresult cuMemFree(std::uint32_t address) { return address == 0x2000'0000 ? kSuccess : kInvalidValue; }

// Private tables let the runtime make contexts past every wrapper: size, then the functions.
CUresult cuGetExportTable(const void** table, const void*) {
  static const void* const entries[] = {reinterpret_cast<const void*>(2 * sizeof(void*)),
                                        reinterpret_cast<const void*>(&cuDevicePrimaryCtxRetain)};
  *table = static_cast<const void*>(entries);
  return kSuccess;
}
}
