#include "capture/tensorflow/library.h"

#include "capture/once.h"
#include "record/recorder.h"

namespace vramscope::capture::tensorflow {

namespace {

Library g_library;
Once g_bound;
constexpr int kBound = 1;
constexpr int kNotThere = 2;

bool bind_all(Library& found) {
  const LoadedObject object = loaded_object(kFile);
  if (object.dynamic == nullptr) return false;
  const auto object_of = [&](const char*) { return object; };  // one file has all of them
#define HOOK VS_HOOK_BIND
#include "capture/tensorflow/hooks.inc"
#undef HOOK
  bind(object, "_ZN3tsl12BFCAllocator4NameB5cxx11Ev", found.allocator_name);
  bind(object, "_ZNK3tsl12BFCAllocator13AllocatedSizeEPKv", found.allocated_size);
  bind(object, "_ZN3tsl12BFCAllocator8GetStatsEv", found.get_stats);
  bind(object, "_ZNK3tsl12BFCAllocator13GetMemoryTypeEv", found.memory_type);
  bind(object, "_ZN3tsl8profiler27ScopedMemoryDebugAnnotation27ThreadMemoryDebugAnnotationEv", found.annotation);
  bind(object, "_ZdlPv", found.release);
  if (found.release == nullptr) bind(loaded_object("libstdc++.so"), "_ZdlPv", found.release);
  return found.allocate_raw != nullptr && found.deallocate_raw != nullptr;
}

// Other threads wait: until the functions are bound, a call cannot be forwarded.
__attribute__((noinline, cold)) const Library* bind_once() {
  const int state = g_bound([] {
    if (bind_all(g_library)) return kBound;
    record::say_once("TensorFlow's allocator was called but its library could not be found",
                     "its allocations are not recorded; please report the TensorFlow version");
    return kNotThere;
  });
  return state == kBound ? &g_library : nullptr;
}

}  // namespace

bool is_bound() { return g_bound.state() == kBound; }

const Library* library() { return __builtin_expect(is_bound(), 1) ? &g_library : bind_once(); }

}  // namespace vramscope::capture::tensorflow
