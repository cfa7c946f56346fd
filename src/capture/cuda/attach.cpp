#include "capture/cuda/attach.h"

#include <cstddef>

#include "capture/cuda/driver.h"
#include "capture/elf_symbols.h"
#include "capture/patch.h"

extern "C" {
// The entries of exports.cpp under names that cannot be found elsewhere first.
__attribute__((visibility("hidden"))) extern const char vs_dlsym_entry[];
__attribute__((visibility("hidden"))) extern const char vs_dlvsym_entry[];
}

namespace vramscope::capture::cuda {

namespace {

constexpr std::size_t kLookups = 2;
constexpr std::size_t kHooks = 0
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) +1
#include "capture/cuda/hooks.inc"
    ;

void* entry(const char* code) { return const_cast<char*>(code); }

}  // namespace

int attach_late() {
  if (!bind_driver()) return 0;
  Replacement replacements[kLookups + kHooks] = {
      {"dlsym", libc_function("dlsym"), entry(vs_dlsym_entry)},
      {"dlvsym", libc_function("dlvsym"), entry(vs_dlvsym_entry)},
  };
  std::size_t count = kLookups;
  const auto add = [&](const char* symbol, void* original, void* ours) {
    if (wrapper_of(original) == ours) replacements[count++] = {symbol, original, ours};  // otherwise this driver does not have it
  };
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) \
  add(#symbol, real_function(Function::symbol), reinterpret_cast<void*>(&vs_##symbol));
#include "capture/cuda/hooks.inc"
  const int imports = redirect({}, nullptr, 0, replacements, count);
  return imports + redirect_data(replacements + kLookups, count - kLookups);
}

}  // namespace vramscope::capture::cuda
