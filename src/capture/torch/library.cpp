#include "capture/torch/library.h"

#include <string.h>

#include "capture/once.h"

namespace vramscope::capture::torch {

namespace {

Library g_library;
Once g_bound;
constexpr int kBound = 1;

}  // namespace

const Library* library() {
  if (__builtin_expect(g_bound.state() == kBound, 1)) return &g_library;
  bool there = false;
  g_bound([&] {
    const LoadedObject core = loaded_object(kCoreFile);
    const LoadedObject autograd = loaded_object(kAutogradFile);
    const auto object_of = [&](const char* file) { return strcmp(file, kCoreFile) == 0 ? core : autograd; };
    Library& found = g_library;
#define HOOK VS_HOOK_BIND
#include "capture/torch/hooks.inc"
#undef HOOK
    bind(autograd, "_ZN2at15sequence_number4peekEv", found.sequence_number);
    bind(core, "_ZN3c108GradMode10is_enabledEv", found.gradients_wanted);
    there = core.dynamic != nullptr;
    // Final as soon as both are loaded.
    return there && autograd.dynamic != nullptr ? kBound : Once::kAgain;
  });
  return there || g_library.profiling_enabled != nullptr ? &g_library : nullptr;
}

}  // namespace vramscope::capture::torch
