// The stream-ordered allocator and its pools.
#include <atomic>

#include "capture/cuda/driver.h"
#include "capture/cuda/events.h"
#include "capture/cuda/place.h"

using namespace vramscope::capture::cuda;
using blocks::Space;
namespace spool = vramscope::spool;

namespace {

// Streams with a meaning instead of an address: default, legacy, per-thread.
bool is_special(CUstream stream) { return reinterpret_cast<std::uint64_t>(stream) <= 2; }

// Stream -> device, learned from the first allocation in it (about 1 us). The current device is part of the key: if a stream's
// handle is reused, that makes a wrong answer extremely unlikely.
struct StreamDevice {
  std::atomic<std::uint64_t> key;  // handle and current device, mixed
  std::atomic<std::int32_t> device;
};
constexpr std::size_t kStreams = 256;
StreamDevice g_streams[kStreams];

int device_of_stream(CUstream stream, int current, CUdeviceptr allocated) {
  if (is_special(stream)) return current;
  const std::uint64_t key =
      (reinterpret_cast<std::uint64_t>(stream) * 0x9e3779b97f4a7c15) ^ static_cast<std::uint64_t>(current + 1);
  StreamDevice& place = g_streams[key >> 56];
  if (place.key.load(std::memory_order_acquire) == key) return place.device.load(std::memory_order_relaxed);
  int device = current;
  if (VS_REAL(cuPointerGetAttribute)(&device, kPointerDeviceOrdinal, allocated) != kSuccess) return current;
  place.key.store(0, std::memory_order_release);
  place.device.store(device, std::memory_order_relaxed);
  place.key.store(key, std::memory_order_release);
  return device;
}

// While a stream is captured, calls become nodes of a graph: nothing is allocated or freed yet.
bool is_captured(CUstream stream, bool per_thread) {
  int status = 0;
  const CUresult result =
      per_thread ? VS_REAL(cuStreamIsCapturing_ptsz)(stream, &status) : VS_REAL(cuStreamIsCapturing)(stream, &status);
  return result == kSuccess && status != 0;
}

void describe(Allocation& allocation, MemPool* pool, int device) {
  allocation.pool = pool != nullptr ? recorded_pool(*pool) : family_pool(Family::stream_ordered, device);
  allocation.context = reinterpret_cast<std::uint64_t>(pool);
  allocation.device = static_cast<std::int8_t>(pool != nullptr ? device_of(*pool) : device);
}

// `pool` NULL: the stream's current one.
template <typename Forward>
CUresult allocating(Caller caller, CUdeviceptr* out, std::size_t bytes, CUmemoryPool from, CUstream stream, bool per_thread,
                    Forward forward) {
  if (!recording()) return forward();
  const Place place = current_place();
  const CUresult result = forwarded(forward);
  if (result != kSuccess && result != kOutOfMemory) return result;
  if (is_captured(stream, per_thread)) {
    graphs_allocate(place.device);
    return result;
  }
  Allocation allocation;
  allocation.caller = caller;
  allocation.key = result == kSuccess ? *out : 0;
  allocation.requested = bytes;
  allocation.stream = reinterpret_cast<std::uint64_t>(stream);
  allocation.record_flags = spool::kFlagAsync;
  allocation.block_flags = blocks::kPooled;
  const int device = allocation.key != 0 ? device_of_stream(stream, place.device, allocation.key) : place.device;
  MemPool* pool = from != nullptr ? mem_pool(from, device) : current_mem_pool(device);
  describe(allocation, pool, device);
  record_outcome(result, allocation);
  if (pool != nullptr) sample_reserved(*pool, false);
  return result;
}

template <typename Forward>
CUresult freeing_async(CUdeviceptr address, CUstream stream, bool per_thread, Forward forward) {
  if (!recording()) return forward();
  if (is_captured(stream, per_thread)) return forwarded(forward);
  blocks::Block freed;
  const CUresult result =
      freeing(Space::device, address, reinterpret_cast<std::uint64_t>(stream), spool::kFlagAsync, forward, &freed);
  if ((freed.flags & blocks::kPooled) != 0 && freed.context != 0)
    sample_reserved(*reinterpret_cast<MemPool*>(freed.context), false);
  return result;
}

}  // namespace

extern "C" {

CUresult vs_cuMemAllocAsync(CUdeviceptr* out, std::size_t bytes, CUstream stream) {
  return allocating(VS_CALLER, out, bytes, nullptr, stream, false, [=] { return VS_REAL(cuMemAllocAsync)(out, bytes, stream); });
}

CUresult vs_cuMemAllocAsync_ptsz(CUdeviceptr* out, std::size_t bytes, CUstream stream) {
  return allocating(VS_CALLER, out, bytes, nullptr, stream, true,
                    [=] { return VS_REAL(cuMemAllocAsync_ptsz)(out, bytes, stream); });
}

CUresult vs_cuMemAllocFromPoolAsync(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  return allocating(VS_CALLER, out, bytes, pool, stream, false,
                    [=] { return VS_REAL(cuMemAllocFromPoolAsync)(out, bytes, pool, stream); });
}

CUresult vs_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  return allocating(VS_CALLER, out, bytes, pool, stream, true,
                    [=] { return VS_REAL(cuMemAllocFromPoolAsync_ptsz)(out, bytes, pool, stream); });
}

CUresult vs_cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return freeing_async(address, stream, false, [=] { return VS_REAL(cuMemFreeAsync)(address, stream); });
}

CUresult vs_cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return freeing_async(address, stream, true, [=] { return VS_REAL(cuMemFreeAsync_ptsz)(address, stream); });
}

CUresult vs_cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  const CUresult result = VS_REAL(cuMemPoolCreate)(out, props);
  if (result == kSuccess && props != nullptr) mem_pool(*out, props->location.type == kLocationDevice ? props->location.id : -1);
  return result;
}

CUresult vs_cuMemPoolDestroy(CUmemoryPool pool) {
  const CUresult result = VS_REAL(cuMemPoolDestroy)(pool);
  if (result == kSuccess && recording()) pool_destroyed(pool);
  return result;
}

CUresult vs_cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep) {
  const CUresult result = VS_REAL(cuMemPoolTrimTo)(pool, keep);
  if (result == kSuccess && recording()) {
    if (MemPool* known = mem_pool(pool, current_place().device)) sample_reserved(*known, true);
  }
  return result;
}

CUresult vs_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  const CUresult result = VS_REAL(cuDeviceSetMemPool)(device, pool);
  if (result == kSuccess) set_current_mem_pool(device, pool);
  return result;
}

CUresult vs_cuMemSetMemPool(CUmemLocation* location, int type, CUmemoryPool pool) {
  const CUresult result = VS_REAL(cuMemSetMemPool)(location, type, pool);
  // Remove and query again: `type` decides which of the device's pools this is.
  if (result == kSuccess && location != nullptr && location->type == kLocationDevice) set_current_mem_pool(location->id, nullptr);
  return result;
}
}
