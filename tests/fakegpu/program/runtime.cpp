// Stands for the shared CUDA runtime: its callers reach the driver through it.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

extern "C" __attribute__((visibility("default"), noinline)) int cudaMalloc(
    void** out,  // NOLINT(readability-identifier-naming): the name of the real one
    std::size_t bytes) {
  using Allocate = int (*)(std::uint64_t*, std::size_t);
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  static const auto allocate = reinterpret_cast<Allocate>(dlsym(driver, "cuMemAlloc_v2"));
  std::uint64_t address = 0;
  const int result = allocate(&address, bytes);
  *out = reinterpret_cast<void*>(address);
  return result;
}
