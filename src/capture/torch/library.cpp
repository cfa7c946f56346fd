#include "capture/torch/library.h"

#include <string.h>

#include <atomic>

#include "capture/loader.h"
#include "capture/patch.h"
#include "capture/torch/hooks.h"
#include "record/recorder.h"

namespace vramscope::capture::torch {

namespace {

Library g_library;
std::atomic<int> g_state;  // 0 unbound, 1 being bound, 2 bound

template <typename Function>
void bind(void* handle, const char* symbol, Function& function) {
  void* found = handle != nullptr ? real_dlsym(handle, symbol) : nullptr;
  memcpy(&function, &found, sizeof function);
}

}  // namespace

const Library* library() {
  if (__builtin_expect(g_state.load(std::memory_order_acquire) == 2, 1)) return &g_library;
  int unbound = 0;
  if (g_state.compare_exchange_strong(unbound, 1, std::memory_order_acquire)) {
    // Python opens these libraries RTLD_LOCAL: RTLD_NEXT would not find them.
    void* const core = loaded_library("libc10.so");
    void* const autograd = loaded_library("libtorch_cpu.so");
#define HOOK(name, file, result, symbol, parameters, arguments) \
  bind(strcmp(file, "libc10.so") == 0 ? core : autograd, symbol, g_library.name);
#include "capture/torch/hooks.inc"
#undef HOOK
    bind(autograd, "_ZN2at15sequence_number4peekEv", g_library.sequence_number);
    bind(core, "_ZN3c108GradMode10is_enabledEv", g_library.gradients_wanted);
    // libc10 is loaded, and calls, before libtorch_cpu: bound for good once both are there.
    g_state.store(core != nullptr && autograd != nullptr ? 2 : 0, std::memory_order_release);
    return core != nullptr ? &g_library : nullptr;
  }
  while (g_state.load(std::memory_order_acquire) == 1) {
  }
  return g_library.profiling_enabled != nullptr ? &g_library : nullptr;
}

int attach_late() {
  const Library* const real = library();
  if (real == nullptr) return -1;
  const Replacement replacements[] = {
#define HOOK(name, file, result, symbol, parameters, arguments) \
  {symbol, reinterpret_cast<void*>(real->name), reinterpret_cast<void*>(vramscope_torch_##name)},
#include "capture/torch/hooks.inc"
#undef HOOK
  };
  return redirect(nullptr, nullptr, 0, replacements, sizeof replacements / sizeof *replacements);
}

}  // namespace vramscope::capture::torch
