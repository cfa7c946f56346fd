// Lookups that must be the same with and without the library in the process.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

extern "C" int victim_value();
extern "C" int cuVictim();

int main() {
  std::printf("next %d %d\n", victim_value(), cuVictim());
  void* self = dlopen(nullptr, RTLD_NOW);
  std::printf("prefix %d %d\n", dlsym(self, "cudnnVictim") != nullptr, dlsym(RTLD_DEFAULT, "cuVictim") != nullptr);
  // No driver in this process: nobody may find one.
  std::printf("absent %d %d %d\n", dlsym(RTLD_DEFAULT, "cuInit") != nullptr, dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != nullptr,
              dlsym(self, "cuMemAlloc_v2") != nullptr);
  dlerror();
  const bool missing = dlsym(self, "cuNoSuchFunction") == nullptr;
  const char* error = dlerror();
  std::printf("error %d %s\n", missing, error != nullptr && std::strstr(error, "cuNoSuchFunction") != nullptr ? "named" : "lost");
  const bool versioned = dlvsym(RTLD_DEFAULT, "strlen", "GLIBC_2.2.5") != nullptr;
  std::printf("version %d %d\n", versioned, dlvsym(RTLD_DEFAULT, "strlen", "GLIBC_9.9") != nullptr);
  // A tool that looks for dlsym itself gets one that works.
  using Dlsym = void* (*)(void*, const char*);
  const auto found = reinterpret_cast<Dlsym>(dlsym(RTLD_NEXT, "dlsym"));
  std::printf("itself %d\n", found != nullptr && found(RTLD_DEFAULT, "victim_value") != nullptr);
  return 0;
}
