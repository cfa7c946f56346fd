// A CUDA-driver program without CUDA: cuda_program WAY SCENARIO [NUMBER...]
//
// WAY: how it finds the driver (api.h). It prints what it did (truth.h) and returns 0 unless the driver surprised it.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "api.h"
#include "truth.h"

namespace program {
namespace {

Api cu;
Truth truth;

[[noreturn]] void die(const char* what, int line) {
  std::fprintf(stderr, "cuda_program: line %d: %s\n", line, what);
  std::exit(3);
}
#define MUST(call) \
  if ((call) != 0) die(#call, __LINE__)
#define CHECK(condition) \
  if (!(condition)) die(#condition, __LINE__)

CUcontext use_device(int device) {
  CUcontext context = nullptr;
  MUST(cu.cuDevicePrimaryCtxRetain(&context, device));
  MUST(cu.cuCtxSetCurrent(context));
  return context;
}

CUdeviceptr allocate(std::uint64_t bytes, const char* kind = "linear") {
  CUdeviceptr address = 0;
  if (cu.cuMemAlloc_v2(&address, bytes) != 0) {
    truth.refused(kind);
    return 0;
  }
  truth.allocated(kind, bytes);
  return address;
}

void release(CUdeviceptr address, std::uint64_t bytes, const char* kind = "linear") {
  if (cu.cuMemFree_v2(address) == 0 && address != 0) truth.freed(kind, bytes);
}

void linear() {
  use_device(0);
  std::vector<std::pair<CUdeviceptr, std::uint64_t>> live;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    const std::uint64_t bytes = i * i * 977 % (6 << 20) + 1;
    live.emplace_back(allocate(bytes), bytes);
    if (i % 3 == 0) {
      const auto [address, size] = live[live.size() / 2];
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(live.size() / 2));
      release(address, size);
    }
  }
  release(0, 0);
  CUdeviceptr pitched = 0;
  std::size_t pitch = 0;
  MUST(cu.cuMemAllocPitch_v2(&pitched, &pitch, 1000, 3000, 4));
  truth.allocated("linear", pitch * 3000);
  CUdeviceptr managed = 0;
  MUST(cu.cuMemAllocManaged(&managed, 5 << 20, 1));
  truth.allocated("managed", 5 << 20);
  CUdeviceptr kept = 0;
  MUST(cu.cuMemAllocManaged(&kept, 7 << 20, 1));
  truth.allocated("managed", 7 << 20);
  release(managed, 5 << 20, "managed");
}

void stream_ordered() {
  use_device(0);
  CUstream stream = nullptr;
  MUST(cu.cuStreamCreate(&stream, 0));
  std::vector<CUdeviceptr> live;
  for (int i = 0; i < 300; ++i) {
    CUdeviceptr address = 0;
    const auto function = i % 2 == 0 ? cu.cuMemAllocAsync : cu.cuMemAllocAsync_ptsz;
    MUST(function(&address, 1 << 20, i % 5 == 0 ? nullptr : stream));
    truth.allocated("default", 1 << 20);
    live.push_back(address);
    if (i % 3 != 0) continue;
    MUST((i % 2 == 0 ? cu.cuMemFreeAsync : cu.cuMemFreeAsync_ptsz)(live.front(), stream));
    truth.freed("default", 1 << 20);
    live.erase(live.begin());
  }
  MUST(cu.cuMemFree_v2(live.back()));  // the plain call frees them too
  truth.freed("default", 1 << 20);
  CUmemPoolProps props{};
  props.alloc_type = 1;
  props.location = {kLocationDevice, 0};
  CUmemoryPool own = nullptr;
  MUST(cu.cuMemPoolCreate(&own, &props));
  CUdeviceptr in_own = 0;
  MUST(cu.cuMemAllocFromPoolAsync(&in_own, 50 << 20, own, stream));
  truth.allocated("own", 50 << 20);
  MUST(cu.cuMemFreeAsync(in_own, stream));
  truth.freed("own", 50 << 20);
  MUST(cu.cuMemPoolTrimTo(own, 0));
  MUST(cu.cuDeviceSetMemPool(0, own));
  CUdeviceptr again = 0;
  MUST(cu.cuMemAllocAsync(&again, 3 << 20, stream));
  truth.allocated("own", 3 << 20);
}

void virtual_memory() {
  use_device(0);
  constexpr std::size_t kBytes = 4 << 20;
  CUmemAllocationProp prop{};
  prop.type = 1;
  prop.location = {kLocationDevice, 0};
  CUmemGenericAllocationHandle handles[4] = {};
  for (auto& handle : handles) {
    MUST(cu.cuMemCreate(&handle, kBytes, &prop, 0));
    truth.allocated("physical", kBytes);
  }
  CUdeviceptr space = 0;
  MUST(cu.cuMemAddressReserve(&space, 4 * kBytes, 0, 0, 0));
  truth.allocated("reserved", 4 * kBytes);
  for (std::size_t i = 0; i < 3; ++i) MUST(cu.cuMemMap(space + i * kBytes, kBytes, 0, handles[i], 0));
  MUST(cu.cuMemRelease(handles[0]));  // still mapped: lives
  CUmemGenericAllocationHandle again = 0;
  MUST(cu.cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(space + kBytes)));
  CHECK(again == handles[1]);
  MUST(cu.cuMemRelease(handles[1]));  // one reference left, and mapped
  CHECK(cu.cuMemUnmap(space + 17, kBytes) != 0);
  MUST(cu.cuMemUnmap(space, 2 * kBytes));  // ends 0, not 1
  truth.freed("physical", kBytes);
  MUST(cu.cuMemRelease(again));  // ends 1
  truth.freed("physical", kBytes);
  CHECK(cu.cuMemRelease(0x77) != 0);
  MUST(cu.cuMemRelease(handles[3]));  // never mapped
  truth.freed("physical", kBytes);
  CUmemGenericAllocationHandle imported = 0;
  MUST(cu.cuMemImportFromShareableHandle(&imported, nullptr, 1));
  MUST(cu.cuMemMap(space + 3 * kBytes, kBytes, 0, imported, 0));
  truth.allocated("imported", kBytes);
  CUmemAllocationProp host = prop;
  host.location = {kLocationHostNuma, 0};
  CUmemGenericAllocationHandle on_host = 0;
  MUST(cu.cuMemCreate(&on_host, kBytes, &host, 0));
  truth.allocated("pinned", kBytes);
}

void pinned() {
  use_device(0);
  void* a = nullptr;
  void* b = nullptr;
  static char registered[4 << 20];
  MUST(cu.cuMemHostAlloc(&a, 1 << 20, 0));
  truth.allocated("pinned", 1 << 20);
  MUST(cu.cuMemAllocHost_v2(&b, 2 << 20));
  truth.allocated("pinned", 2 << 20);
  MUST(cu.cuMemHostRegister_v2(registered, sizeof registered, 0));
  truth.allocated("pinned", sizeof registered);
  CHECK(cu.cuMemHostRegister(registered, sizeof registered, 0) != 0);
  CHECK(cu.cuMemFreeHost(registered) != 0);  // refused: the free is taken back
  MUST(cu.cuMemHostUnregister(registered));
  truth.freed("pinned", sizeof registered);
  MUST(cu.cuMemFreeHost(a));
  truth.freed("pinned", 1 << 20);
}

void arrays() {
  use_device(0);
  const CUDA_ARRAY_DESCRIPTOR flat{4096, 1024, 0x20, 1};
  const CUDA_ARRAY3D_DESCRIPTOR deep{64, 64, 64, 0x01, 4, 0};
  const CUDA_ARRAY3D_DESCRIPTOR sparse{4096, 4096, 0, 0x20, 1, kArraySparse};
  CUarray a = nullptr, b = nullptr, c = nullptr;
  CUmipmappedArray m = nullptr;
  MUST(cu.cuArrayCreate_v2(&a, &flat));
  truth.allocated("array", 16 << 20);
  MUST(cu.cuArray3DCreate_v2(&b, &deep));
  truth.allocated("array", 1 << 20);
  MUST(cu.cuArray3DCreate_v2(&c, &sparse));  // no memory yet
  const CUDA_ARRAY3D_DESCRIPTOR base{256, 256, 0, 0x10, 2, 0};
  MUST(cu.cuMipmappedArrayCreate(&m, &base, 3));
  truth.allocated("array", (256 * 256 + 128 * 128 + 64 * 64) * 4);
  MUST(cu.cuArrayDestroy(a));
  truth.freed("array", 16 << 20);
  MUST(cu.cuArrayDestroy(c));
  MUST(cu.cuMipmappedArrayDestroy(m));
  truth.freed("array", (256 * 256 + 128 * 128 + 64 * 64) * 4);
}

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

void inter_process() {
  use_device(0);
  const CUdeviceptr address = allocate(1 << 20);
  CUipcMemHandle handle{};
  MUST(cu.cuIpcGetMemHandle(&handle, address));
  CUdeviceptr opened = 0, again = 0;
  MUST(cu.cuIpcOpenMemHandle_v2(&opened, handle, 1));
  truth.allocated("imported", 1 << 20);
  MUST(cu.cuIpcOpenMemHandle(&again, handle, 1));
  CHECK(opened == again);
  MUST(cu.cuIpcCloseMemHandle(opened));
  MUST(cu.cuIpcCloseMemHandle(opened));
  truth.freed("imported", 1 << 20);
  CHECK(cu.cuIpcCloseMemHandle(opened) != 0);
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC descriptor{};
  descriptor.bytes = 3 << 20;
  CUexternalMemory external = nullptr;
  MUST(cu.cuImportExternalMemory(&external, &descriptor));
  truth.allocated("imported", 3 << 20);
  MUST(cu.cuDestroyExternalMemory(external));
  truth.freed("imported", 3 << 20);
}

void graphs() {
  use_device(0);
  CUstream stream = nullptr;
  MUST(cu.cuStreamCreate(&stream, 0));
  MUST(cu.cuStreamBeginCapture_v2(stream, 0));
  CUdeviceptr captured = 0;
  MUST(cu.cuMemAllocAsync(&captured, 1 << 20, stream));  // a node, not an allocation
  MUST(cu.cuMemFreeAsync(captured, stream));
  CUgraph from_capture = nullptr;
  MUST(cu.cuStreamEndCapture(stream, &from_capture));
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.bytes = 96 << 20;
  MUST(cu.cuGraphCreate(&graph, 0));
  MUST(cu.cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  MUST(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
  MUST(cu.cuGraphLaunch(exec, stream));
  MUST(cu.cuGraphExecDestroy(exec));
  MUST(cu.cuDeviceGraphMemTrim(0));
  allocate(1 << 20);
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
  if (refused != 0) die(error, __LINE__);
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

// Holds memory until its input ends, for tests with several processes.
void hold(std::uint64_t bytes) {
  use_device(0);
  allocate(bytes);
  std::printf("holding\n");
  std::fflush(stdout);
  for (char byte = 0; read(STDIN_FILENO, &byte, 1) > 0;) {
  }
}

// Some of each kind, held until its input ends: the books must balance with what the card says.
void mixture() {
  use_device(0);
  for (int i = 1; i <= 40; ++i) allocate(static_cast<std::uint64_t>(i) * 70'000);
  for (int i = 0; i < 5; ++i) allocate((static_cast<std::uint64_t>(i) << 20) + 1);
  stream_ordered();
  virtual_memory();
  pinned();
  CUdeviceptr managed = 0;
  MUST(cu.cuMemAllocManaged(&managed, 100 << 20, 1));
  graphs();
  hold(33 << 20);
}

int number(char** arguments, int count, int index, int otherwise) {
  return index < count ? std::atoi(arguments[index]) : otherwise;
}

int run(int count, char** arguments) {
  if (count < 3 || !load(arguments[1], &cu)) return 4;
  const std::string scenario = arguments[2];
  MUST(cu.cuInit(0));
  if (scenario == "linear")
    linear();
  else if (scenario == "async")
    stream_ordered();
  else if (scenario == "virtual")
    virtual_memory();
  else if (scenario == "pinned")
    pinned();
  else if (scenario == "arrays")
    arrays();
  else if (scenario == "failures")
    failures();
  else if (scenario == "contexts")
    contexts();
  else if (scenario == "threads")
    threads(number(arguments, count, 3, 8), number(arguments, count, 4, 2000));
  else if (scenario == "devices")
    devices();
  else if (scenario == "ipc")
    inter_process();
  else if (scenario == "graphs")
    graphs();
  else if (scenario == "behind")
    behind();
  else if (scenario == "old")
    old_names();
  else if (scenario == "owners")
    owners();
  else if (scenario == "late")
    late();
  else if (scenario == "fork")
    forked();
  else if (scenario == "full")
    fill_up();
  else if (scenario == "mixture")
    mixture();
  else if (scenario == "hold")
    hold(static_cast<std::uint64_t>(number(arguments, count, 3, 64)) << 20);
  else if (scenario != "nothing")
    return 5;
  truth.print();
  return 0;
}

}  // namespace
}  // namespace program

int main(int count, char** arguments) { return program::run(count, arguments); }
