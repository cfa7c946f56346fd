// cuGetProcAddress as the real one behaves: base names only, the newest variant up to the version asked for, the per-thread twin
// by flag, and the very addresses that dlsym finds.
#include <cstring>

#include "driver.h"

namespace {

struct Entry {
  const char* base;
  int since;
  bool per_thread;
  void* address;
};

const Entry kEntries[] = {
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) \
  {#base, since, per_thread != 0, reinterpret_cast<void*>(&symbol)},
#define VS_QUERY(symbol, base, since, per_thread, parameters) {#base, since, per_thread != 0, reinterpret_cast<void*>(&symbol)},
#include "capture/cuda/hooks.inc"
#define FAKE_ENTRY(symbol, base, since, per_thread, parameters) {#base, since, per_thread != 0, reinterpret_cast<void*>(&symbol)},
#include "extra.inc"
};

CUresult look_up(const char* name, void** out, int version, std::uint64_t flags, int* status) {
  if (name == nullptr || out == nullptr) return kInvalidValue;
  int driver_version = 0;
  cuDriverGetVersion(&driver_version);
  if (version > driver_version) return kInvalidValue;
  const Entry* best = nullptr;
  bool known = false;
  for (const Entry& entry : kEntries) {
    if (std::strcmp(entry.base, name) != 0) continue;
    known = true;
    if (entry.since > version || (entry.per_thread && flags != kProcPerThread)) continue;
    const bool better = best == nullptr || entry.since > best->since || (entry.since == best->since && entry.per_thread);
    if (better) best = &entry;
  }
  *out = best == nullptr ? nullptr : best->address;
  if (status != nullptr) *status = best != nullptr ? kProcFound : known ? kProcVersionTooLow : kProcNotFound;
  return kSuccess;
}

}  // namespace

extern "C" {

CUresult cuGetProcAddress(const char* name, void** out, int version, std::uint64_t flags) {
  FAKE_CALL(cuGetProcAddress);
  return look_up(name, out, version, flags, nullptr);
}

CUresult cuGetProcAddress_v2(const char* name, void** out, int version, std::uint64_t flags, int* status) {
  FAKE_CALL(cuGetProcAddress_v2);
  return look_up(name, out, version, flags, status);
}
}
