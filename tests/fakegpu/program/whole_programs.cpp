// Scenarios about contexts, threads, processes and libraries.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "scenario.h"

namespace program {
namespace {

// With FAKEGPU_FAIL: what the driver refuses did not happen.
void failures() {
  use_device(0);
  std::vector<CUdeviceptr> live;
  for (int i = 0; i < 10; ++i) {
    if (const CUdeviceptr address = allocate(1 << 20)) live.push_back(address);
  }
  for (const CUdeviceptr address : live) release(address, 1 << 20);
}

void contexts() {
  CUcontext first = nullptr, second = nullptr;
  MUST(cu.cuCtxCreate_v2(&first, 0, 0));
  allocate(3 << 20);
  allocate(1000);
  void* host = nullptr;
  MUST(cu.cuMemHostAlloc(&host, 1 << 20, 0));
  truth.allocated("pinned", 1 << 20);
  MUST(cu.cuCtxCreate_v4(&second, nullptr, 0, 0));
  allocate(5 << 20);
  MUST(cu.cuCtxDestroy_v2(first));
  truth.freed("linear", 3 << 20);
  truth.freed("linear", 1000);
  truth.freed("pinned", 1 << 20);
  CHECK(cu.cuCtxDestroy_v2(reinterpret_cast<CUcontext>(0x10)) != 0);
  MUST(cu.cuCtxDestroy_v2(second));
  truth.freed("linear", 5 << 20);
  use_device(0);
  use_device(0);
  allocate(7 << 20);
  MUST(cu.cuDevicePrimaryCtxRelease_v2(0));
  allocate(1 << 20);  // still there
  MUST(cu.cuDevicePrimaryCtxRelease_v2(0));
  truth.freed("linear", 7 << 20);
  truth.freed("linear", 1 << 20);
  use_device(0);
  allocate(2 << 20);
  CUdeviceptr pooled = 0;
  MUST(cu.cuMemAllocAsync(&pooled, 1 << 20, nullptr));
  truth.allocated("default", 1 << 20);
  MUST(cu.cuDevicePrimaryCtxReset_v2(0));
  truth.freed("linear", 2 << 20);
  truth.freed("default", 1 << 20);
  use_device(0);
  allocate(9 << 20);
}

// Threads that give each other's addresses back to the driver and get them again at once (FAKEGPU_REUSE=1).
void threads(int count, int rounds) {
  use_device(0);
  std::vector<std::thread> all;
  all.reserve(static_cast<std::size_t>(count));
  for (int t = 0; t < count; ++t) {
    all.emplace_back([=] {
      use_device(0);
      for (int i = 0; i < rounds; ++i) {
        const std::uint64_t bytes = 4096u << (i % 3);
        CUdeviceptr a = allocate(bytes);
        CUdeviceptr b = 0;
        MUST(cu.cuMemAllocAsync(&b, bytes, nullptr));
        truth.allocated("default", bytes);
        release(a, bytes);
        truth.freed("default", bytes);
        MUST(cu.cuMemFreeAsync(b, nullptr));
      }
    });
  }
  for (std::thread& thread : all) thread.join();
}

void devices() {
  int count = 0;
  MUST(cu.cuDeviceGetCount(&count));
  for (int device = 0; device < count; ++device) {
    use_device(device);
    allocate(static_cast<std::uint64_t>(device + 1) << 20, ("linear" + std::to_string(device)).c_str());
  }
  // A thread without a context, and physical memory on a device that is not the current one.
  std::thread([&] {
    CUmemAllocationProp prop{};
    prop.location = {kLocationDevice, count - 1};
    CUmemGenericAllocationHandle handle = 0;
    MUST(cu.cuMemCreate(&handle, 2 << 20, &prop, 0));
    truth.allocated("physical", 2 << 20);
    CUdeviceptr none = 0;
    CHECK(cu.cuMemAlloc_v2(&none, 100) != 0);
  }).join();
}

// A context that no wrapper saw coming.
void behind() {
  const void* table = nullptr;
  MUST(cu.cuGetExportTable(&table, nullptr));
  const auto retain = reinterpret_cast<decltype(cu.cuDevicePrimaryCtxRetain)>(static_cast<void* const*>(table)[1]);
  CUcontext context = nullptr;
  MUST(retain(&context, 0));
  MUST(cu.cuCtxSetCurrent(context));
  allocate(3 << 20);
}

// The names of CUDA 2.x keep their 32-bit interface.
void old_names() {
  use_device(0);
  std::uint32_t address = 0;
  MUST(cu.cuMemAlloc(&address, 16));
  CHECK(address == 0x2000'0000);
  MUST(cu.cuMemFree(address));
  std::uint32_t sizes[4] = {1, 2, 3, 4};
  MUST(cu.cuMemGetInfo(&sizes[0], &sizes[2]));
  CHECK(sizes[1] == 2 && sizes[3] == 4);
}

// Libraries that allocate on their own; each takes (n + 1) MiB itself and (n + 1) KiB through the runtime.
void owners() {
  use_device(0);
  std::size_t n = 0;
  for (const char* name :
       {"libnccl.so", "libcublasLt.so", "libtensorflow_cc.so", "libtorch_cuda.so", "libstrangers_library.so"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != nullptr);
    using Take = int (*)(std::size_t);
    ++n;
    MUST(reinterpret_cast<Take>(dlsym(library, "take_from_driver"))(n << 20));
    truth.allocated(name, n << 20);
    MUST(reinterpret_cast<Take>(dlsym(library, "take_from_runtime"))(n << 10));
    truth.allocated(name, n << 10);
  }
}

// Recording begins after everything was bound and used, and ends before the program does. LATE_LIBRARY: the library,
// LATE_SPOOL: where to.
void late() {
  use_device(0);
  void* nccl = dlopen("libnccl.so", RTLD_NOW | RTLD_LOCAL);
  CHECK(nccl != nullptr);
  using Take = int (*)(std::size_t);
  const auto take = reinterpret_cast<Take>(dlsym(nccl, "take_from_driver"));
  const auto take_through_runtime = reinterpret_cast<Take>(dlsym(nccl, "take_from_runtime"));
  CUdeviceptr before = 0;
  MUST(cu.cuMemAlloc_v2(&before, 10 << 20));
  MUST(take(11 << 20));
  MUST(take_through_runtime(12 << 20));

  void* library = dlopen(std::getenv("LATE_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  CHECK(library != nullptr);
  using Attach = int (*)(const char*, std::uint64_t, const char*, char*, std::size_t);
  char error[256] = "";
  const int refused =
      reinterpret_cast<Attach>(dlsym(library, "vramscope_attach"))(std::getenv("LATE_SPOOL"), 64 << 20, "", error, sizeof error);
  if (refused != 0) die(__FILE__, __LINE__, error);
  const CUdeviceptr own = allocate(1 << 20);
  allocate(2 << 20);
  release(own, 1 << 20);
  MUST(cu.cuMemFree_v2(before));
  MUST(take(3 << 20));
  truth.allocated("linear", 3 << 20);
  MUST(take_through_runtime(4 << 20));
  truth.allocated("linear", 4 << 20);
  // What is looked up from now on is found as well.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto fresh = reinterpret_cast<decltype(cu.cuMemAlloc_v2)>(dlsym(driver, "cuMemAlloc_v2"));
  CUdeviceptr address = 0;
  MUST(fresh(&address, 5 << 20));
  truth.allocated("linear", 5 << 20);

  reinterpret_cast<void (*)()>(dlsym(library, "vramscope_detach"))();
  MUST(take(13 << 20));
  MUST(cu.cuMemAlloc_v2(&address, 14 << 20));
}

// A child that was forked in the middle records its own allocations, and only those.
void forked() {
  use_device(0);
  const CUdeviceptr before = allocate(1 << 20);
  CUdeviceptr pooled_before = 0;
  MUST(cu.cuMemAllocAsync(&pooled_before, 40 << 20, nullptr));
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const CUdeviceptr own = allocate(2 << 20);
    allocate(3 << 20);
    release(own, 2 << 20);
    CUdeviceptr pooled = 0;
    MUST(cu.cuMemAllocAsync(&pooled, 1 << 20, nullptr));
    cu.cuMemFree_v2(before);  // the parent's
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  allocate(5 << 20);
  release(before, 1 << 20);
}

void fill_up() {
  use_device(0);
  while (allocate(256 << 20) != 0) {
  }
}

constexpr Scenario kScenarios[] = {
    {"failures", failures},
    {"contexts", contexts},
    {"threads", [] { threads(number(0, 8), number(1, 2000)); }},
    {"devices", devices},
    {"behind", behind},
    {"old", old_names},
    {"owners", owners},
    {"late", late},
    {"fork", forked},
    {"full", fill_up},
    {"hold", [] { hold(static_cast<std::uint64_t>(number(0, 64)) << 20); }},
    {"nothing", [] {}},
};

}  // namespace

// Holds memory until its input ends, for tests with several processes.
void hold(std::uint64_t bytes) {
  use_device(0);
  allocate(bytes);
  std::printf("holding\n");
  std::fflush(stdout);
  for (char byte = 0; read(STDIN_FILENO, &byte, 1) > 0;) {
  }
}

std::span<const Scenario> whole_programs() { return kScenarios; }

}  // namespace program
