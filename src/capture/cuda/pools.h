// The pools of the driver level: one per device and kind of memory, and one per pool of the stream-ordered allocator.
#pragma once

#include <cstdint>

#include "capture/cuda/abi.h"

namespace vramscope::capture::cuda {

enum class Family : std::uint8_t {
  linear,         // cuMemAlloc
  managed,        // cuMemAllocManaged
  pinned,         // host memory that the device can access
  array,          // cuArrayCreate
  physical,       // cuMemCreate; a block's address is its handle
  reservation,    // addresses without memory; its regions are what is mapped into them
  imported,       // memory of other processes and APIs
  graph,          // memory that graphs hold on the device; regions only
  stream_ordered  // more pools of the stream-ordered allocator than can be distinguished
};

// record::kNoPool if nothing is recorded.
std::uint8_t family_pool(Family family, int device);

// --- pools of the stream-ordered allocator

struct MemPool;

// Finds or creates. `device` is used if the pool is new: -1 = host memory. NULL if there are too many.
MemPool* mem_pool(CUmemoryPool handle, int device);
// The pool that cuMemAllocAsync currently uses on this device. NULL if unknown.
MemPool* current_mem_pool(int device);
void set_current_mem_pool(int device, CUmemoryPool handle);
int device_of(const MemPool& pool);
std::uint8_t recorded_pool(const MemPool& pool);

// Reads the pool's reserved bytes if that is due (every 64th call, after 10 ms, or if more is live than was reserved), and
// records growth or return. `now` = in any case.
void sample_reserved(MemPool& pool, bool now);
void pool_destroyed(CUmemoryPool handle);

// Graph memory of a device, once a graph has allocated.
void graphs_allocate(int device);
void sample_graph_memory(int device, bool now);
bool any_graph_memory();

}  // namespace vramscope::capture::cuda
