// Scenarios that use one kind of memory each.
#include <vector>

#include "scenario.h"

namespace program {
namespace {

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

// Memory of this device bound to an object that reaches several: what counts is the memory.
void multicast() {
  use_device(0);
  constexpr std::size_t kBytes = 4 << 20;
  CUmemAllocationProp prop{};
  prop.type = 1;
  prop.location = {kLocationDevice, 0};
  CUmemGenericAllocationHandle memory = 0;
  MUST(cu.cuMemCreate(&memory, kBytes, &prop, 0));
  truth.allocated("physical", kBytes);
  const CUmulticastObjectProp object{8, kBytes};
  CUmemGenericAllocationHandle handle = 0;
  if (cu.cuMulticastCreate == nullptr || cu.cuMulticastCreate(&handle, &object) != 0) {
    truth.refused("multicast");
    return;
  }
  truth.allocated("multicast", kBytes);
  CUdeviceptr space = 0;
  MUST(cu.cuMemAddressReserve(&space, kBytes, 0, 0, 0));
  truth.allocated("reserved", kBytes);
  MUST(cu.cuMemMap(space, kBytes, 0, handle, 0));
  MUST(cu.cuMemRelease(handle));  // still mapped: lives
  MUST(cu.cuMemUnmap(space, kBytes));
  truth.freed("multicast", kBytes);
  CHECK(cu.cuMemRelease(handle) != 0);
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

constexpr Scenario kScenarios[] = {
    {"linear", linear}, {"async", stream_ordered}, {"virtual", virtual_memory}, {"multicast", multicast}, {"pinned", pinned},
    {"arrays", arrays}, {"ipc", inter_process},    {"graphs", graphs},          {"mixture", mixture},
};

}  // namespace

std::span<const Scenario> kinds_of_memory() { return kScenarios; }

}  // namespace program
