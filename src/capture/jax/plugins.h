// The plugins of XLA that this process has opened, each with a copy of the allocator.
#pragma once

#include <cstddef>

#include "capture/bfc_pools.h"
#include "capture/jax/vtable.h"

namespace vramscope::capture::jax {

extern const Framework kFramework;

inline constexpr const char* kCudaPlugin = "xla_cuda_plugin";  // the start of its file name
inline constexpr std::size_t kMostPlugins = 4;

// The functions of one plugin's allocator class that the hooks call.
struct Allocator {
  void* (*allocate)(void* self, std::size_t alignment, std::size_t bytes, const void* attributes);
  void (*deallocate)(void* self, void* block);
  std::size_t (*allocated_size)(const void* self, const void* block);
  void (*destroy)(void* self);
  void (*destroy_and_free)(void* self);
  BfcQueries queries;
  BfcPools pools;
  FoundBy found_by;
};

// Replaces the allocator's functions in the plugin that has this address, once per plugin. Returns the number of replaced
// functions.
int take_over_allocator(const void* inside);
int record_counters();

// For the hooks: the plugin with this number, which exists.
Allocator& allocator_of(std::size_t plugin);

// The hooks of the plugin with this number, by method; NULL for methods that are only called.
void* hook_of(std::size_t plugin, Method method);

}  // namespace vramscope::capture::jax
