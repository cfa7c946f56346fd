// A library that wraps a function of its own name and finds the original with RTLD_NEXT: it must not find itself. And one whose
// name begins like a driver function but is none.
#include <dlfcn.h>

#define PUBLIC extern "C" __attribute__((visibility("default")))

PUBLIC int victim_value() {
  static int depth = 0;
  if (++depth > 2) return -1;  // found itself
  using Function = int (*)();
  const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "victim_value"));
  const int value = next == nullptr ? 0 : next();
  --depth;
  return value + 100;
}

PUBLIC int cuVictim() {
  using Function = int (*)();
  const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "cuVictim"));
  return next == nullptr ? 0 : next() + 100;
}

PUBLIC int cudnnVictim() { return 5; }
