// TensorFlow's own functions, found in its loaded library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/bfc_pools.h"
#include "capture/framework.h"
#include "capture/hook.h"

namespace vramscope::capture::tensorflow {

extern const Framework kFramework;

inline constexpr const char* kFile = "libtensorflow_framework.so";  // the start of its file name

struct Library {
#define HOOK VS_HOOK_MEMBER
#include "capture/tensorflow/hooks.inc"
#undef HOOK
  ReturnedString* (*allocator_name)(ReturnedString* out, void* allocator);
  std::size_t (*allocated_size)(const void* allocator, const void* block);
  void* (*get_stats)(void* out, void* allocator);
  int (*memory_type)(const void* allocator);  // 2.13+; NULL before
  void* (*annotation)();
  void (*release)(void* heap);  // operator delete, for the strings that TensorFlow returns
};

// Binds the functions at the first call. NULL if TensorFlow is not loaded, or lacks one of the two functions that must exist.
const Library* library();
// Whether library() has already found it.
bool is_bound();

}  // namespace vramscope::capture::tensorflow
