#include "capture/jax/plugins.h"

#include <string.h>
#include <unistd.h>

#include <atomic>

#include "capture/patch.h"
#include "record/options.h"
#include "record/recorder.h"
#include "record/setup.h"

namespace vramscope::capture::jax {

namespace {

struct Plugin {
  std::atomic<std::uintptr_t> base;  // 0: free
  bool replaced;
  Vtable vtable;
  Allocator allocator;
};
constinit Plugin g_plugins[kMostPlugins]{};
std::atomic<int> g_busy;  // one plugin at a time: the process whose thread is at it

template <typename Function>
void take(Function& function, const Vtable& vtable, Method method) {
  void** const slot = vtable.slot(method);
  if (slot != nullptr) memcpy(&function, slot, sizeof function);
}

// The functions have to be there before the first hook is.
void bind_functions(Allocator& allocator, const Vtable& vtable) {
  take(allocator.allocate, vtable, Method::allocate);
  take(allocator.deallocate, vtable, Method::deallocate);
  take(allocator.allocated_size, vtable, Method::allocated_size);
  take(allocator.destroy, vtable, Method::destroy);
  take(allocator.destroy_and_free, vtable, Method::destroy_and_free);
  take(allocator.queries.name, vtable, Method::name);
  take(allocator.queries.get_stats, vtable, Method::get_stats);
  take(allocator.queries.memory_type, vtable, Method::memory_type);
  void* const release = symbol_in(loaded_object("libstdc++.so"), "_ZdlPv");
  memcpy(&allocator.queries.release, &release, sizeof release);
  allocator.found_by = vtable.found_by;
}

// Also after the end of a recording has put the plugin's own functions back. Returns the number of slots that have our hooks.
int replace_functions(std::size_t index) {
  const Vtable& vtable = g_plugins[index].vtable;
  int replaced = 0;
  for (std::size_t method = 0; method < static_cast<std::size_t>(Method::kCount); ++method) {
    void* const hook = hook_of(index, static_cast<Method>(method));
    if (hook == nullptr || vtable.slots[method] == nullptr) continue;
    redirect_slot(vtable.slots[method], hook);
    if (*vtable.slots[method] == hook) ++replaced;
  }
  return replaced;
}

bool is_for_gpus(const char* path) {
  const char* const slash = path != nullptr ? strrchr(path, '/') : nullptr;
  return slash != nullptr && strncmp(slash + 1, kCudaPlugin, strlen(kCudaPlugin)) == 0;
}

int take_over(const LoadedObject& object) {
  std::size_t index = 0;
  for (; index < kMostPlugins && g_plugins[index].base.load() != 0; ++index)
    if (g_plugins[index].base.load() == object.base) return g_plugins[index].replaced ? replace_functions(index) : 0;
  if (index == kMostPlugins) return 0;
  Plugin& plugin = g_plugins[index];
  plugin.base.store(object.base);
  plugin.vtable = find_vtable(object);
  int replaced = 0;
  if (plugin.vtable.found_by != FoundBy::nothing) {
    bind_functions(plugin.allocator, plugin.vtable);
    replaced = replace_functions(index);
  }
  plugin.replaced = replaced > 0;
  if (!plugin.replaced && is_for_gpus(object.path)) {
    record::setting("jax.allocator_found_by", text_of(FoundBy::nothing));
    record::say_once("the allocator inside this version of JAX's CUDA plugin was not found",
                     "its pool is recorded as one block of the driver; please report the version of JAX");
  }
  return replaced;
}

}  // namespace

Allocator& allocator_of(std::size_t plugin) { return g_plugins[plugin].allocator; }

int take_over_allocator(const void* inside) {
  const LoadedObject object = object_with(inside);
  if (object.dynamic == nullptr || record::is_off() || record::g_options.spool_folder[0] == '\0') return 0;
  const int me = getpid();
  // A child that was forked meanwhile does not wait for a thread that it does not have.
  for (int there = 0; !g_busy.compare_exchange_weak(there, me, std::memory_order_acquire) && there == me; there = 0)
    __builtin_ia32_pause();
  const int replaced = take_over(object);
  g_busy.store(0, std::memory_order_release);
  return replaced;
}

int record_counters() {
  int answered = 0;
  for (Plugin& plugin : g_plugins)
    if (plugin.base.load() != 0 && plugin.replaced) answered += plugin.allocator.pools.record_counters(plugin.allocator.queries);
  return answered;
}

}  // namespace vramscope::capture::jax
