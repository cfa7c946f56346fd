// Virtual memory management: physical memory lives until its handle and all its mappings are gone.
#include <cstring>

#include "driver.h"

using namespace fakegpu;

namespace {

void drop_if_unused(std::uint64_t handle) {
  const auto found = driver().physical.find(handle);
  if (found == driver().physical.end() || found->second.refs > 0 || found->second.mappings > 0) return;
  if (found->second.device >= 0 && !found->second.imported) {
    driver().devices[static_cast<std::size_t>(found->second.device)].refund(found->second.bytes);
  }
  driver().physical.erase(found);
}

}  // namespace

extern "C" {

CUresult cuMemCreate(CUmemGenericAllocationHandle* out, std::size_t bytes, const CUmemAllocationProp* prop, unsigned long long) {
  FAKE_CALL(cuMemCreate);
  if (out == nullptr || prop == nullptr || bytes == 0 || bytes % kSlabBytes != 0) return kInvalidValue;
  std::scoped_lock guard(driver().lock);
  const int device = prop->location.type == kLocationDevice ? prop->location.id : -1;
  if (device >= 0) {
    if (!known_device(device)) return kInvalidDevice;
    if (!driver().devices[static_cast<std::size_t>(device)].charge(bytes)) return kOutOfMemory;
  }
  *out = driver().next_handle += 16;
  driver().physical[*out] = {.device = device, .bytes = bytes};
  return kSuccess;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  FAKE_CALL(cuMemRelease);
  std::scoped_lock guard(driver().lock);
  const auto found = driver().physical.find(handle);
  if (found == driver().physical.end() || found->second.refs == 0) return kInvalidValue;
  --found->second.refs;
  drop_if_unused(handle);
  return kSuccess;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  FAKE_CALL(cuMemRetainAllocationHandle);
  std::scoped_lock guard(driver().lock);
  auto found = driver().mappings.upper_bound(reinterpret_cast<std::uint64_t>(address));
  if (found == driver().mappings.begin()) return kInvalidValue;
  --found;
  if (reinterpret_cast<std::uint64_t>(address) >= found->first + found->second.bytes) return kInvalidValue;
  *out = found->second.handle;
  ++driver().physical[*out].refs;
  return kSuccess;
}

CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle, int, unsigned long long) {
  std::memcpy(out, &handle, sizeof(int));
  return kSuccess;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void*, int) {
  FAKE_CALL(cuMemImportFromShareableHandle);
  std::scoped_lock guard(driver().lock);
  *out = driver().next_handle += 16;
  driver().physical[*out] = {.device = 0, .bytes = 0, .imported = true};
  return kSuccess;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* out, const CUmulticastObjectProp* prop) {
  FAKE_CALL(cuMulticastCreate);
  if (out == nullptr || prop == nullptr || prop->devices == 0 || prop->bytes == 0 || prop->bytes % kSlabBytes != 0)
    return kInvalidValue;
  std::scoped_lock guard(driver().lock);
  *out = driver().next_handle += 16;
  driver().physical[*out] = {.device = -1, .bytes = 0};
  return kSuccess;
}

CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  FAKE_CALL(cuMemMap);
  std::scoped_lock guard(driver().lock);
  const auto found = driver().physical.find(handle);
  if (found == driver().physical.end() || offset != 0 || driver().mappings.contains(address)) return kInvalidValue;
  ++found->second.mappings;
  driver().mappings[address] = {bytes, handle};
  return kSuccess;
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  FAKE_CALL(cuMemUnmap);
  std::scoped_lock guard(driver().lock);
  if (!driver().mappings.contains(address)) return kInvalidValue;
  for (auto at = driver().mappings.lower_bound(address); at != driver().mappings.end() && at->first < address + bytes;) {
    const std::uint64_t handle = at->second.handle;
    at = driver().mappings.erase(at);
    --driver().physical[handle].mappings;
    drop_if_unused(handle);
  }
  return kSuccess;
}

CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const void*, std::size_t) { return kSuccess; }

CUresult cuMemAddressReserve(CUdeviceptr* out, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
  FAKE_CALL(cuMemAddressReserve);
  if (out == nullptr || bytes == 0 || driver().devices.empty()) return kInvalidValue;
  std::scoped_lock guard(driver().lock);
  *out = driver().devices[0].address_range(round_up(bytes, kSlabBytes));
  driver().reservations[*out] = bytes;
  return kSuccess;
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t) {
  FAKE_CALL(cuMemAddressFree);
  std::scoped_lock guard(driver().lock);
  return driver().reservations.erase(address) == 1 ? kSuccess : kInvalidValue;
}
}
