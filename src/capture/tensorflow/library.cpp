#include "capture/tensorflow/library.h"

#include <string.h>
#include <atomic>

#include "capture/loader.h"
#include "record/recorder.h"

namespace vramscope::capture::tensorflow {

namespace {

Library g_library;
std::atomic<int> g_state;  // 0 unbound, 1 being bound, 2 bound, 3 absent

template <typename Function>
void bind(void* handle, const char* symbol, Function& function) {
  void* found = real_dlsym(handle, symbol);
  memcpy(&function, &found, sizeof function);
}

bool bind_all() {
  void* handle = loaded_library("libtensorflow_framework.so");
  if (handle == nullptr) return false;
#define HOOK(name, result, symbol, parameters, arguments) bind(handle, symbol, g_library.name);
#include "capture/tensorflow/bfc.inc"
#undef HOOK
  bind(handle, "_ZN3tsl12BFCAllocator4NameB5cxx11Ev", g_library.allocator_name);
  bind(handle, "_ZNK3tsl12BFCAllocator13AllocatedSizeEPKv", g_library.allocated_size);
  bind(handle, "_ZN3tsl12BFCAllocator8GetStatsEv", g_library.get_stats);
  bind(handle, "_ZNK3tsl12BFCAllocator13GetMemoryTypeEv", g_library.memory_type);
  bind(handle, "_ZN3tsl8profiler27ScopedMemoryDebugAnnotation27ThreadMemoryDebugAnnotationEv", g_library.annotation);
  bind(handle, "_ZdlPv", g_library.release);
  return g_library.allocate_raw != nullptr && g_library.deallocate_raw != nullptr;
}

__attribute__((noinline, cold)) const Library* bind_once() {
  int unbound = 0;
  if (g_state.compare_exchange_strong(unbound, 1, std::memory_order_acquire)) {
    const bool bound = bind_all();
    if (!bound)
      record::say_once("TensorFlow's allocator was called but its library could not be found",
                       "its allocations are not recorded; please report the TensorFlow version");
    g_state.store(bound ? 2 : 3, std::memory_order_release);
  }
  // Another thread is binding: its few microseconds are waited for, there is nowhere to forward the call to meanwhile.
  int state = 1;
  while ((state = g_state.load(std::memory_order_acquire)) == 1) {
  }
  return state == 2 ? &g_library : nullptr;
}

}  // namespace

bool is_bound() { return g_state.load(std::memory_order_acquire) == 2; }

const Library* library() { return __builtin_expect(is_bound(), 1) ? &g_library : bind_once(); }

}  // namespace vramscope::capture::tensorflow
