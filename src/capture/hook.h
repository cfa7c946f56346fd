// The forms into which a framework's table of hooks expands: hooks.inc in its folder, or a macro HOOKS(HOOK) in its
// framework.cpp. All tables have the same columns:
//
//   HOOK(framework, name, file, result, symbol, parameters, arguments)
//     framework   its folder and namespace
//     name        our name; the hook is `on_<name>(const Library& real, parameters)` in that namespace
//     file        start of the file name of the library that defines the symbol
//     symbol      exact exported name
//
// To use one of the forms below: `#define HOOK VS_HOOK_...`, include the table, `#undef HOOK`; or `HOOKS(VS_HOOK_...)`.
#pragma once

#include <string.h>

#include "capture/elf_symbols.h"
#include "capture/patch.h"

// A member of the framework's Library: the framework's own function.
#define VS_HOOK_MEMBER(framework, name, file, result, symbol, parameters, arguments) result(*name) parameters;

// Finds that function. The surrounding code defines `object_of(file)` and the Library `found`.
#define VS_HOOK_BIND(framework, name, file, result, symbol, parameters, arguments) \
  ::vramscope::capture::bind(object_of(file), symbol, found.name);

#define VS_HOOK_DECLARE(framework, name, file, result, symbol, parameters, arguments) \
  extern "C" __attribute__((visibility("hidden"))) result vramscope_##framework##_##name parameters;

// The definition that the loader finds before the framework's own, because this library is loaded first. Each has a second name,
// because a late attach needs ours even if the framework's own is found first.
#define VS_HOOK_DEFINE(framework, name, file, result, symbol, parameters, arguments)                  \
  extern "C" __attribute__((visibility("hidden"))) result vramscope_##framework##_##name parameters { \
    using namespace vramscope::capture::framework;                                                    \
    const Library* real = library();                                                                  \
    if (real == nullptr || real->name == nullptr) return ::vramscope::capture::nothing<result>();     \
    return on_##name(VS_HOOK_CALL(*real, VS_HOOK_ARGUMENTS arguments));                               \
  }                                                                                                   \
  extern "C" __attribute__((visibility("default"), alias("vramscope_" #framework "_" #name))) result  \
      vramscope_##framework##_exported_##name parameters __asm__(symbol);
#define VS_HOOK_ARGUMENTS(...) __VA_ARGS__
#define VS_HOOK_CALL(real, ...) real __VA_OPT__(, ) __VA_ARGS__

// What a late attach replaces: an element of Replacement[]. `real` is the framework's Library.
#define VS_HOOK_REPLACE(framework, name, file, result, symbol, parameters, arguments) \
  {symbol, reinterpret_cast<void*>((real).name), reinterpret_cast<void*>(vramscope_##framework##_##name)},

namespace vramscope::capture {

// What a hook returns if the framework's own function was not found.
template <typename Result>
Result nothing() {
  return Result();
}

// NULL if the library is not loaded or does not have the function.
template <typename Function>
void bind(const LoadedObject& object, const char* symbol, Function& function) {
  void* found = symbol_in(object, symbol);
  memcpy(&function, &found, sizeof function);
}

}  // namespace vramscope::capture
