// Stream-ordered memory, its pools, streams and graphs.
#include <algorithm>
#include <cstring>

#include "driver.h"

using namespace fakegpu;

namespace fakegpu {

Pool* pool_of(CUstream stream, int device) {
  const Stream* known = stream_of(stream);
  return driver().current_pool[static_cast<std::size_t>(known == nullptr ? device : known->device)];
}

void settle(Pool& pool, std::uint64_t keep) {
  const std::uint64_t target = std::max(round_up(pool.used, kPoolStep), round_up(keep, kPoolStep));
  if (target >= pool.reserved) return;
  if (pool.device >= 0) driver().devices[static_cast<std::size_t>(pool.device)].refund(pool.reserved - target);
  pool.reserved = target;
}

}  // namespace fakegpu

namespace {

bool grow(Pool& pool, std::uint64_t used) {
  const std::uint64_t target = round_up(used, kPoolStep);
  if (target <= pool.reserved) return true;
  if (pool.device >= 0 && !driver().devices[static_cast<std::size_t>(pool.device)].charge(target - pool.reserved)) return false;
  pool.reserved = target;
  return true;
}

CUresult allocate(CUdeviceptr* out, std::size_t bytes, Pool* pool, CUstream stream) {
  if (out == nullptr || bytes == 0 || pool == nullptr) return kInvalidValue;
  const std::uint64_t rounded = round_up(bytes, kStepBytes);
  const int device = std::max(pool->device, 0);
  DeviceMemory& memory = driver().devices[static_cast<std::size_t>(device)];
  if (const Stream* known = stream_of(stream); known != nullptr && known->capturing) {
    *out = memory.address_range(rounded, kStepBytes);
    driver().pieces[*out] = {Piece::Kind::graph, device, bytes, nullptr, nullptr};
    return kSuccess;
  }
  if (!grow(*pool, pool->used + rounded)) return kOutOfMemory;
  pool->used += rounded;
  *out = memory.address_range(rounded, kStepBytes);
  driver().pieces[*out] = {Piece::Kind::pooled, device, bytes, nullptr, pool};
  return kSuccess;
}

CUresult allocate_current(CUdeviceptr* out, std::size_t bytes, CUstream stream) {
  std::scoped_lock guard(driver().lock);
  if (current() == nullptr) return kInvalidContext;
  return allocate(out, bytes, pool_of(stream, current()->device), stream);
}

CUresult allocate_from(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  std::scoped_lock guard(driver().lock);
  const auto found = driver().pools.find(static_cast<Pool*>(pool));
  if (found == driver().pools.end() || found->second->dead) return kInvalidValue;
  return allocate(out, bytes, found->first, stream);
}

CUresult release(CUdeviceptr address, CUstream stream) {
  std::scoped_lock guard(driver().lock);
  const auto found = driver().pieces.find(address);
  if (found == driver().pieces.end()) return kInvalidValue;
  if (const Stream* known = stream_of(stream); known != nullptr && known->capturing) return kSuccess;
  const Piece piece = found->second;
  if (piece.kind != Piece::Kind::pooled && piece.kind != Piece::Kind::graph) return kInvalidValue;
  driver().pieces.erase(found);
  if (piece.pool == nullptr) return kSuccess;
  const std::uint64_t rounded = round_up(piece.bytes, kStepBytes);
  piece.pool->used -= rounded;
  driver().devices[static_cast<std::size_t>(piece.device)].give_back_range(address, rounded);
  return kSuccess;
}

CUresult capturing(CUstream stream, int* status) {
  std::scoped_lock guard(driver().lock);
  const Stream* known = stream_of(stream);
  *status = known != nullptr && known->capturing ? 1 : 0;
  return kSuccess;
}

// Graph memory appears at launch and stays until it is trimmed.
CUresult launch(CUgraphExec exec) {
  std::scoped_lock guard(driver().lock);
  const auto found = driver().graphs.find(static_cast<Graph*>(exec));
  if (found == driver().graphs.end()) return kInvalidHandle;
  const Graph& graph = *found->second;
  std::uint64_t& reserved = driver().graph_reserved[static_cast<std::size_t>(graph.device)];
  if (graph.bytes > reserved) {
    if (!driver().devices[static_cast<std::size_t>(graph.device)].charge(graph.bytes - reserved)) return kOutOfMemory;
    reserved = graph.bytes;
  }
  return kSuccess;
}

CUresult make_graph(void** out, std::uint64_t bytes) {
  if (out == nullptr || current() == nullptr) return kInvalidValue;
  auto graph = std::make_unique<Graph>(Graph{.device = current()->device, .bytes = bytes});
  *out = graph.get();
  driver().graphs.emplace(graph.get(), std::move(graph));
  return kSuccess;
}

CUresult drop_graph(void* graph) {
  std::scoped_lock guard(driver().lock);
  return driver().graphs.erase(static_cast<Graph*>(graph)) == 1 ? kSuccess : kInvalidHandle;
}

}  // namespace

extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr* out, std::size_t bytes, CUstream stream) {
  FAKE_CALL(cuMemAllocAsync);
  return allocate_current(out, bytes, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, std::size_t bytes, CUstream stream) {
  FAKE_CALL(cuMemAllocAsync_ptsz);
  return allocate_current(out, bytes, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  FAKE_CALL(cuMemAllocFromPoolAsync);
  return allocate_from(out, bytes, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  FAKE_CALL(cuMemAllocFromPoolAsync_ptsz);
  return allocate_from(out, bytes, pool, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  FAKE_CALL(cuMemFreeAsync);
  return release(address, stream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  FAKE_CALL(cuMemFreeAsync_ptsz);
  return release(address, stream);
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  FAKE_CALL(cuMemPoolCreate);
  if (out == nullptr || props == nullptr) return kInvalidValue;
  std::scoped_lock guard(driver().lock);
  auto pool = std::make_unique<Pool>(Pool{.device = props->location.type == kLocationDevice ? props->location.id : -1});
  *out = pool.get();
  driver().pools.emplace(pool.get(), std::move(pool));
  return kSuccess;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  FAKE_CALL(cuMemPoolDestroy);
  std::scoped_lock guard(driver().lock);
  const auto found = driver().pools.find(static_cast<Pool*>(pool));
  if (found == driver().pools.end()) return kInvalidValue;
  found->second->dead = true;  // kept: outstanding allocations still point to it
  settle(*found->second, 0);
  return kSuccess;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep) {
  FAKE_CALL(cuMemPoolTrimTo);
  std::scoped_lock guard(driver().lock);
  const auto found = driver().pools.find(static_cast<Pool*>(pool));
  if (found == driver().pools.end()) return kInvalidValue;
  settle(*found->second, keep);
  return kSuccess;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* out) {
  std::scoped_lock guard(driver().lock);
  const auto found = driver().pools.find(static_cast<Pool*>(pool));
  if (found == driver().pools.end() || found->second->dead) return kInvalidValue;
  const Pool& known = *found->second;
  const std::uint64_t value = attribute == kPoolReservedCurrent ? known.reserved
                              : attribute == kPoolUsedCurrent   ? known.used
                                                                : known.threshold;
  std::memcpy(out, &value, sizeof value);
  return kSuccess;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value) {
  std::scoped_lock guard(driver().lock);
  const auto found = driver().pools.find(static_cast<Pool*>(pool));
  if (found == driver().pools.end()) return kInvalidValue;
  if (attribute == kPoolReleaseThreshold) std::memcpy(&found->second->threshold, value, sizeof(std::uint64_t));
  return kSuccess;
}

CUresult cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool pool, void* data) {
  FAKE_CALL(cuMemPoolImportPointer);
  std::scoped_lock guard(driver().lock);
  if (!driver().pools.contains(static_cast<Pool*>(pool))) return kInvalidValue;
  std::memcpy(out, data, sizeof *out);
  driver().pieces[*out] = {Piece::Kind::graph, 0, 4096, nullptr, nullptr};
  return kSuccess;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  std::scoped_lock guard(driver().lock);
  if (!known_device(device)) return kInvalidDevice;
  *out = driver().default_pool[static_cast<std::size_t>(device)];
  return kSuccess;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  std::scoped_lock guard(driver().lock);
  if (!known_device(device)) return kInvalidDevice;
  *out = driver().current_pool[static_cast<std::size_t>(device)];
  return kSuccess;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  FAKE_CALL(cuDeviceSetMemPool);
  std::scoped_lock guard(driver().lock);
  if (!known_device(device) || !driver().pools.contains(static_cast<Pool*>(pool))) return kInvalidValue;
  driver().current_pool[static_cast<std::size_t>(device)] = static_cast<Pool*>(pool);
  return kSuccess;
}

CUresult cuMemSetMemPool(CUmemLocation* location, int, CUmemoryPool pool) {
  FAKE_CALL(cuMemSetMemPool);
  if (location == nullptr || location->type != kLocationDevice) return kInvalidValue;
  return cuDeviceSetMemPool(location->id, pool);
}

CUresult cuStreamCreate(CUstream* out, unsigned) {
  std::scoped_lock guard(driver().lock);
  if (current() == nullptr) return kInvalidContext;
  auto stream = std::make_unique<Stream>(Stream{.device = current()->device});
  *out = stream.get();
  driver().streams.emplace(stream.get(), std::move(stream));
  return kSuccess;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  std::scoped_lock guard(driver().lock);
  return driver().streams.erase(static_cast<Stream*>(stream)) == 1 ? kSuccess : kInvalidHandle;
}

CUresult cuStreamSynchronize(CUstream stream) {
  std::scoped_lock guard(driver().lock);
  if (current() == nullptr) return kInvalidContext;
  Pool* pool = pool_of(stream, current()->device);
  settle(*pool, pool->threshold);
  return kSuccess;
}

CUresult cuStreamIsCapturing(CUstream stream, int* status) { return capturing(stream, status); }
CUresult cuStreamIsCapturing_ptsz(CUstream stream, int* status) { return capturing(stream, status); }

CUresult cuStreamBeginCapture_v2(CUstream stream, int) {
  std::scoped_lock guard(driver().lock);
  Stream* known = stream_of(stream);
  if (known == nullptr) return kInvalidHandle;
  known->capturing = true;
  return kSuccess;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* out) {
  std::scoped_lock guard(driver().lock);
  Stream* known = stream_of(stream);
  if (known == nullptr || !known->capturing) return kInvalidHandle;
  known->capturing = false;
  return make_graph(out, 0);
}

CUresult cuGraphCreate(CUgraph* out, unsigned) {
  std::scoped_lock guard(driver().lock);
  return make_graph(out, 0);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long) {
  std::scoped_lock guard(driver().lock);
  const auto found = driver().graphs.find(static_cast<Graph*>(graph));
  return found == driver().graphs.end() ? kInvalidHandle : make_graph(out, found->second->bytes);
}

CUresult cuGraphExecDestroy(CUgraphExec graph) { return drop_graph(graph); }
CUresult cuGraphDestroy(CUgraph graph) { return drop_graph(graph); }

CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode*, std::size_t,
                                CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  FAKE_CALL(cuGraphAddMemAllocNode);
  std::scoped_lock guard(driver().lock);
  const auto found = driver().graphs.find(static_cast<Graph*>(graph));
  if (found == driver().graphs.end() || params == nullptr) return kInvalidValue;
  found->second->bytes += round_up(params->bytes, kPoolStep);
  params->address =
      driver().devices[static_cast<std::size_t>(found->second->device)].address_range(round_up(params->bytes, kSlabBytes));
  *out = reinterpret_cast<void*>(driver().next_handle += 16);
  return kSuccess;
}

CUresult cuGraphAddNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUgraphNodeParams*) {
  FAKE_CALL(cuGraphAddNode);
  return kSuccess;
}

CUresult cuGraphAddNode_v2(CUgraphNode*, CUgraph, const CUgraphNode*, const void*, std::size_t, CUgraphNodeParams*) {
  FAKE_CALL(cuGraphAddNode_v2);
  return kSuccess;
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream) {
  FAKE_CALL(cuGraphLaunch);
  return launch(graph);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream) {
  FAKE_CALL(cuGraphLaunch_ptsz);
  return launch(graph);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void* out) {
  std::scoped_lock guard(driver().lock);
  if (!known_device(device)) return kInvalidDevice;
  const std::uint64_t value = attribute == kGraphReservedCurrent ? driver().graph_reserved[static_cast<std::size_t>(device)] : 0;
  std::memcpy(out, &value, sizeof value);
  return kSuccess;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  FAKE_CALL(cuDeviceGraphMemTrim);
  std::scoped_lock guard(driver().lock);
  if (!known_device(device)) return kInvalidDevice;
  std::uint64_t& reserved = driver().graph_reserved[static_cast<std::size_t>(device)];
  driver().devices[static_cast<std::size_t>(device)].refund(reserved);
  reserved = 0;
  return kSuccess;
}
}
