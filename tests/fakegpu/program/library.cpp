// A library that allocates, itself or through the runtime. Built under several file names.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#define PUBLIC extern "C" __attribute__((visibility("default"), noinline))

extern "C" int cudaMalloc(void** out, std::size_t bytes);

PUBLIC int take_from_driver(std::size_t bytes) {
  using Allocate = int (*)(std::uint64_t*, std::size_t);
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  static const auto allocate = reinterpret_cast<Allocate>(dlsym(driver, "cuMemAlloc_v2"));
  std::uint64_t address = 0;
  const int result = allocate(&address, bytes);
  return result + static_cast<int>(address & 1);  // not a tail call
}

PUBLIC int take_from_runtime(std::size_t bytes) {
  void* address = nullptr;
  const int result = cudaMalloc(&address, bytes);
  return result + (address == nullptr ? 1 : 0);
}
