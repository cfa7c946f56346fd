// TensorFlow's own functions, found in the loaded library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::capture::tensorflow {

// The 32 bytes of a std::string in libstdc++'s layout, as TensorFlow returns it.
struct ReturnedString {
  char* data;
  std::size_t size;
  char local[16];
};

struct Library {
#define HOOK(name, result, symbol, parameters, arguments) result(*name) parameters;
#include "capture/tensorflow/bfc.inc"
#undef HOOK
  ReturnedString* (*allocator_name)(ReturnedString* out, void* allocator);
  std::size_t (*allocated_size)(const void* allocator, const void* block);
  void* (*get_stats)(void* out, void* allocator);
  int (*memory_type)(const void* allocator);  // 2.13+; NULL before
  void* (*annotation)();
  void (*release)(void* heap);  // operator delete, as TensorFlow's strings were allocated
};

// Bound at the first call; NULL while TensorFlow is not loaded, or if the two entries that must exist do not.
const Library* library();
// Whether library() has found it already.
bool is_bound();

}  // namespace vramscope::capture::tensorflow
