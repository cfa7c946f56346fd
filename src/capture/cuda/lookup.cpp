// How programs find the driver's functions: dlsym, dlvsym and cuGetProcAddress return wrappers instead of what they found.
//
// The wrapper is chosen by the address that was found, never by the requested name: one name stands for several binary
// interfaces. Whatever needs no change is a jump into glibc with the caller's return address in place, because glibc identifies
// the caller by it (RTLD_NEXT, RTLD_DEFAULT).
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "capture/cuda/driver.h"
#include "capture/elf_symbols.h"
#include "capture/framework.h"

using namespace vramscope::capture::cuda;
using vramscope::capture::libc_function;

namespace {

using Dlsym = void* (*)(void*, const char*);
using Dlvsym = void* (*)(void*, const char*, const char*);

void* nothing_found() { return nullptr; }

// What the driver's function is replaced by, if it is one.
void* replaced(void* found) {
  void* wrapper = found != nullptr ? wrapper_of(found) : nullptr;
  return wrapper != nullptr ? wrapper : found;
}

}  // namespace

extern "C" {

// Read by the entries in exports.cpp. Set before main; an earlier caller finds NULL and resolves.
__attribute__((visibility("hidden"))) std::atomic<void*> vs_real_dlsym;
__attribute__((visibility("hidden"))) std::atomic<void*> vs_real_dlvsym;

__attribute__((visibility("hidden"))) void* vs_resolve_dlsym() {
  void* real = libc_function("dlsym");
  if (real != nullptr) vs_real_dlsym.store(real, std::memory_order_release);
  return real != nullptr ? real : reinterpret_cast<void*>(&nothing_found);
}

__attribute__((visibility("hidden"))) void* vs_resolve_dlvsym() {
  void* real = libc_function("dlvsym");
  if (real != nullptr) vs_real_dlvsym.store(real, std::memory_order_release);
  return real != nullptr ? real : reinterpret_cast<void*>(&nothing_found);
}
}

namespace {

[[gnu::constructor]] void resolve_early() {
  vs_resolve_dlsym();
  vs_resolve_dlvsym();
}

Dlsym real_dlsym_pointer() {
  void* real = vs_real_dlsym.load(std::memory_order_acquire);
  return reinterpret_cast<Dlsym>(real != nullptr ? real : vs_resolve_dlsym());
}

Dlvsym real_dlvsym_pointer() {
  void* real = vs_real_dlvsym.load(std::memory_order_acquire);
  return reinterpret_cast<Dlvsym>(real != nullptr ? real : vs_resolve_dlvsym());
}

// Binding comes first: a successful lookup after it leaves dlerror() as the program expects it.
void* driver_dlsym(void* handle, const char* name) {
  bind_driver();
  return replaced(real_dlsym_pointer()(handle, name));
}

void* driver_dlvsym(void* handle, const char* name, const char* version) {
  bind_driver();
  return replaced(real_dlvsym_pointer()(handle, name, version));
}

// As if this library did not define the name: without a driver, no lookup may find one. Not a tail call, because glibc must see
// us as the caller.
void* dlsym_after_us(void*, const char* name) {
  void* found = real_dlsym_pointer()(RTLD_NEXT, name);
  __asm__ volatile("" : "+r"(found));
  return found;
}

void* dlvsym_after_us(void*, const char* name, const char* version) {
  void* found = real_dlvsym_pointer()(RTLD_NEXT, name, version);
  __asm__ volatile("" : "+r"(found));
  return found;
}

// A framework asks a plugin for its table of functions.
void* plugin_dlsym(void* handle, const char* name) {
  void* const found = real_dlsym_pointer()(handle, name);
  const vramscope::capture::Framework* const framework = vramscope::capture::framework_with_entry(name);
  return found != nullptr && framework != nullptr ? framework->plugin_found(found) : found;
}

enum class Route { real, wrapped, after_us, plugin };

Route route(const void* handle, const char* name, const void* caller) {
  if (*name != 'c') {  // the two handles stand for what the caller's own scope has
    const bool own_scope = handle == RTLD_NEXT || handle == RTLD_DEFAULT;
    return !own_scope && vramscope::capture::framework_with_entry(name) != nullptr ? Route::plugin : Route::real;
  }
  if (handle == RTLD_NEXT || is_driver_code(caller)) return Route::real;
  if (!bind_driver()) return is_hooked(name) ? Route::after_us : Route::real;
  // The caller's own scope counts here, and our exported wrapper comes first in it.
  return handle == RTLD_DEFAULT ? Route::real : Route::wrapped;
}

}  // namespace

extern "C" {

// For names like cuXyz and GetPxyz: the function to jump to.
__attribute__((visibility("hidden"))) void* vs_dlsym_target(void* handle, const char* name, const void* caller) {
  switch (route(handle, name, caller)) {
    case Route::wrapped:
      return reinterpret_cast<void*>(&driver_dlsym);
    case Route::after_us:
      return reinterpret_cast<void*>(&dlsym_after_us);
    case Route::plugin:
      return reinterpret_cast<void*>(&plugin_dlsym);
    case Route::real:
      break;
  }
  return reinterpret_cast<void*>(real_dlsym_pointer());
}

__attribute__((visibility("hidden"))) void* vs_dlvsym_target(void* handle, const char* name, const void* caller) {
  switch (route(handle, name, caller)) {
    case Route::wrapped:
      return reinterpret_cast<void*>(&driver_dlvsym);
    case Route::after_us:
      return reinterpret_cast<void*>(&dlvsym_after_us);
    case Route::plugin:  // plugins have no versions of symbols
    case Route::real:
      break;
  }
  return reinterpret_cast<void*>(real_dlvsym_pointer());
}

CUresult vs_cuGetProcAddress(const char* name, void** out, int version, std::uint64_t flags) {
  const CUresult result = VS_REAL(cuGetProcAddress)(name, out, version, flags);
  if (result == kSuccess && out != nullptr && !is_driver_code(__builtin_return_address(0))) *out = replaced(*out);
  return result;
}

CUresult vs_cuGetProcAddress_v2(const char* name, void** out, int version, std::uint64_t flags, int* status) {
  const CUresult result = VS_REAL(cuGetProcAddress_v2)(name, out, version, flags, status);
  if (result == kSuccess && out != nullptr && !is_driver_code(__builtin_return_address(0))) *out = replaced(*out);
  return result;
}
}
