#include "api.h"

#include <dlfcn.h>

#ifdef LINKED_TO_DRIVER
extern "C" {
using namespace vramscope::capture::cuda;  // NOLINT
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) CUresult symbol parameters;
#define VS_QUERY(symbol, base, since, per_thread, parameters) CUresult symbol parameters;
#include "capture/cuda/hooks.inc"
#define FAKE_ENTRY(symbol, base, since, per_thread, parameters) CUresult symbol parameters;
#include "../extra.inc"
}
#endif

namespace program {
namespace {

template <typename Find>
void fill(Api& api, Find find) {
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) \
  api.symbol = reinterpret_cast<decltype(api.symbol)>(find(#symbol, #base, since, per_thread));
#define VS_QUERY(symbol, base, since, per_thread, parameters) \
  api.symbol = reinterpret_cast<decltype(api.symbol)>(find(#symbol, #base, since, per_thread));
#include "capture/cuda/hooks.inc"
#define FAKE_ENTRY(symbol, base, since, per_thread, parameters) \
  api.symbol = reinterpret_cast<decltype(api.symbol)>(find(#symbol, #base, since, per_thread));
#include "../extra.inc"
}

std::uint64_t flag_of(int per_thread) { return per_thread != 0 ? kProcPerThread : kProcLegacy; }

[[maybe_unused]] bool load_by_proc_address(void* library, Api& api) {
  using Lookup = decltype(api.cuGetProcAddress_v2);
  auto first = reinterpret_cast<Lookup>(dlsym(library, "cuGetProcAddress_v2"));
  void* itself = nullptr;
  int status = -1;
  if (first == nullptr || first("cuGetProcAddress", &itself, 12000, kProcLegacy, &status) != 0 || status != kProcFound)
    return false;
  const auto lookup = reinterpret_cast<Lookup>(itself);
  fill(api, [&](const char*, const char* base, int since, int per_thread) {
    void* found = nullptr;
    lookup(base, &found, since, flag_of(per_thread), nullptr);
    return found;
  });
  return true;
}

[[maybe_unused]] bool load_by_first_proc_address(void* library, Api& api) {
  using Lookup = decltype(api.cuGetProcAddress);
  const auto lookup = reinterpret_cast<Lookup>(dlsym(library, "cuGetProcAddress"));
  if (lookup == nullptr) return false;
  fill(api, [&](const char*, const char* base, int since, int per_thread) {
    void* found = nullptr;
    lookup(base, &found, since, flag_of(per_thread));
    return found;
  });
  return true;
}

}  // namespace

bool load(const std::string& way, Api* api) {
#ifdef LINKED_TO_DRIVER
  if (way != "direct") return false;
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) api->symbol = &::symbol;
#define VS_QUERY(symbol, base, since, per_thread, parameters) api->symbol = &::symbol;
#include "capture/cuda/hooks.inc"
#define FAKE_ENTRY(symbol, base, since, per_thread, parameters) api->symbol = &::symbol;
#include "../extra.inc"
  return true;
#else
  void* library = dlopen("libcuda.so.1", RTLD_NOW | (way == "default" ? RTLD_GLOBAL : RTLD_LOCAL));
  if (library == nullptr) return false;
  if (way == "proc") return load_by_proc_address(library, *api);
  if (way == "proc1") return load_by_first_proc_address(library, *api);
  void* handle = way == "default" ? RTLD_DEFAULT : library;
  fill(*api, [&](const char* symbol, const char*, int, int) { return dlsym(handle, symbol); });
  return api->cuInit != nullptr;
#endif
}

}  // namespace program
