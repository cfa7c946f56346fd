// Linear, managed and pinned memory.
#include "capture/cuda/driver.h"
#include "capture/cuda/events.h"
#include "capture/cuda/place.h"

using namespace vramscope::capture::cuda;
using blocks::Space;

namespace {

template <typename Forward>
CUresult allocating(Caller caller, Family family, CUdeviceptr* out, std::size_t bytes, Forward forward) {
  if (!recording()) return forward();
  const Place place = current_place();
  const CUresult result = forwarded(forward);
  Allocation allocation;
  allocation.caller = caller;
  allocation.key = result == kSuccess ? *out : 0;
  allocation.requested = bytes;
  allocation.context = reinterpret_cast<std::uint64_t>(place.context);
  allocation.pool = family_pool(family, place.device);
  allocation.device = static_cast<std::int8_t>(place.device);
  record_outcome(result, allocation);
  return result;
}

template <typename Forward>
CUresult pinning(Caller caller, void* const* out, std::size_t bytes, Forward forward) {
  if (!recording()) return forward();
  const Place place = current_place();
  const CUresult result = forwarded(forward);
  Allocation allocation;
  allocation.caller = caller;
  allocation.space = Space::host;
  allocation.key = result == kSuccess ? reinterpret_cast<std::uint64_t>(*out) : 0;
  allocation.requested = bytes;
  allocation.context = reinterpret_cast<std::uint64_t>(place.context);
  allocation.pool = family_pool(Family::pinned, -1);
  record_outcome(result, allocation);
  return result;
}

template <typename Forward>
CUresult unpinning(const void* address, Forward forward) {
  if (!recording()) return forward();
  return freeing(Space::host, reinterpret_cast<std::uint64_t>(address), 0, 0, forward);
}

}  // namespace

extern "C" {

CUresult vs_cuMemAlloc_v2(CUdeviceptr* out, std::size_t bytes) {
  return allocating(VS_CALLER, Family::linear, out, bytes, [=] { return VS_REAL(cuMemAlloc_v2)(out, bytes); });
}

CUresult vs_cuMemAllocManaged(CUdeviceptr* out, std::size_t bytes, unsigned flags) {
  return allocating(VS_CALLER, Family::managed, out, bytes, [=] { return VS_REAL(cuMemAllocManaged)(out, bytes, flags); });
}

CUresult vs_cuMemAllocPitch_v2(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t rows, unsigned element) {
  if (!recording()) return VS_REAL(cuMemAllocPitch_v2)(out, pitch, width, rows, element);
  const Place place = current_place();
  const CUresult result = forwarded([=] { return VS_REAL(cuMemAllocPitch_v2)(out, pitch, width, rows, element); });
  Allocation allocation;
  allocation.caller = VS_CALLER;
  allocation.key = result == kSuccess ? *out : 0;
  allocation.requested = width * rows;
  allocation.granted = result == kSuccess ? *pitch * rows : 0;
  allocation.context = reinterpret_cast<std::uint64_t>(place.context);
  allocation.pool = family_pool(Family::linear, place.device);
  allocation.device = static_cast<std::int8_t>(place.device);
  record_outcome(result, allocation);
  return result;
}

CUresult vs_cuMemFree_v2(CUdeviceptr address) {
  const auto forward = [=] { return VS_REAL(cuMemFree_v2)(address); };
  return recording() ? freeing(Space::device, address, 0, 0, forward) : forward();
}

CUresult vs_cuMemHostAlloc(void** out, std::size_t bytes, unsigned flags) {
  return pinning(VS_CALLER, out, bytes, [=] { return VS_REAL(cuMemHostAlloc)(out, bytes, flags); });
}

CUresult vs_cuMemAllocHost_v2(void** out, std::size_t bytes) {
  return pinning(VS_CALLER, out, bytes, [=] { return VS_REAL(cuMemAllocHost_v2)(out, bytes); });
}

CUresult vs_cuMemHostRegister(void* address, std::size_t bytes, unsigned flags) {
  return pinning(VS_CALLER, &address, bytes, [=] { return VS_REAL(cuMemHostRegister)(address, bytes, flags); });
}

CUresult vs_cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags) {
  return pinning(VS_CALLER, &address, bytes, [=] { return VS_REAL(cuMemHostRegister_v2)(address, bytes, flags); });
}

CUresult vs_cuMemFreeHost(void* address) {
  return unpinning(address, [=] { return VS_REAL(cuMemFreeHost)(address); });
}

CUresult vs_cuMemHostUnregister(void* address) {
  return unpinning(address, [=] { return VS_REAL(cuMemHostUnregister)(address); });
}
}
