// Linear, managed and pinned memory, arrays, inter-process and external memory.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "driver.h"

using namespace fakegpu;

namespace {

CUresult allocate(CUdeviceptr* out, std::size_t bytes) {
  if (out == nullptr || bytes == 0) return kInvalidValue;
  std::scoped_lock guard(driver().lock);
  Context* context = current();
  if (context == nullptr) return kInvalidContext;
  const auto address = driver().devices[static_cast<std::size_t>(context->device)].allocate(bytes);
  if (!address) return kOutOfMemory;
  driver().pieces[*address] = {Piece::Kind::linear, context->device, bytes, context, nullptr};
  *out = *address;
  return kSuccess;
}

CUresult allocate_host(void** out, std::size_t bytes) {
  if (out == nullptr || bytes == 0) return kInvalidValue;
  std::scoped_lock guard(driver().lock);
  if (current() == nullptr) return kInvalidContext;
  *out = std::aligned_alloc(4096, round_up(bytes, 4096));
  driver().host[reinterpret_cast<std::uint64_t>(*out)] = {bytes, false, current()};
  return kSuccess;
}

CUresult register_host(void* address, std::size_t bytes) {
  if (address == nullptr || bytes == 0) return kInvalidValue;
  std::scoped_lock guard(driver().lock);
  if (current() == nullptr) return kInvalidContext;
  const bool added = driver().host.emplace(reinterpret_cast<std::uint64_t>(address), Host{bytes, true, current()}).second;
  return added ? kSuccess : 712;  // already registered
}

CUresult drop_host(void* address, bool registered) {
  std::scoped_lock guard(driver().lock);
  const auto found = driver().host.find(reinterpret_cast<std::uint64_t>(address));
  if (found == driver().host.end() || found->second.registered != registered) return kInvalidValue;
  driver().host.erase(found);
  if (!registered) std::free(address);
  return kSuccess;
}

CUresult make_array(void** out, std::uint64_t bytes) {
  CUdeviceptr address = 0;
  if (out == nullptr) return kInvalidValue;
  if (bytes != 0) {
    if (const CUresult result = allocate(&address, bytes); result != kSuccess) return result;
  }
  std::scoped_lock guard(driver().lock);
  driver().pieces.erase(address);
  *out = reinterpret_cast<void*>(driver().next_handle += 16);
  driver().arrays[*out] = {current()->device, address, current()};
  return kSuccess;
}

CUresult drop_array(void* array) {
  std::scoped_lock guard(driver().lock);
  const auto found = driver().arrays.find(array);
  if (found == driver().arrays.end()) return kInvalidHandle;
  if (found->second.address != 0) driver().devices[static_cast<std::size_t>(found->second.device)].release(found->second.address);
  driver().arrays.erase(found);
  return kSuccess;
}

std::uint64_t element_bytes(std::int32_t format) {
  return format == 0x01 || format == 0x08 ? 1 : format == 0x20 || format == 0x03 || format == 0x0a ? 4 : 2;
}

std::uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if ((d.flags & (kArraySparse | kArrayDeferred)) != 0) return 0;
  return d.width * (d.height == 0 ? 1 : d.height) * (d.depth == 0 ? 1 : d.depth) * d.channels * element_bytes(d.format);
}

CUresult open_ipc(CUdeviceptr* out, const CUipcMemHandle& handle) {
  std::scoped_lock guard(driver().lock);
  if (current() == nullptr) return kInvalidContext;
  std::uint64_t exported[2];
  std::memcpy(exported, handle.bytes, sizeof exported);
  const CUdeviceptr address = exported[0] + (1ull << 44);  // elsewhere than in the exporter, the same at each opening
  ++current()->opened[address];
  driver().pieces[address] = {Piece::Kind::graph, current()->device, exported[1], nullptr, nullptr};
  *out = address;
  return kSuccess;
}

}  // namespace

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* out, std::size_t bytes) {
  FAKE_CALL(cuMemAlloc_v2);
  return allocate(out, bytes);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t rows, unsigned) {
  FAKE_CALL(cuMemAllocPitch_v2);
  if (pitch == nullptr) return kInvalidValue;
  const std::size_t row = round_up(width, 512);
  CUresult result = kSuccess;
  // FAKEGPU_NESTED: a driver that calls its own public entry, as found from outside.
  if (number_from_env("FAKEGPU_NESTED", 0) != 0) {
    result = reinterpret_cast<decltype(&cuMemAlloc_v2)>(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"))(out, row * rows);
  } else {
    result = allocate(out, row * rows);
  }
  if (result == kSuccess) *pitch = row;
  return result;
}

CUresult cuMemAllocManaged(CUdeviceptr* out, std::size_t bytes, unsigned) {
  FAKE_CALL(cuMemAllocManaged);
  if (out == nullptr || bytes == 0) return kInvalidValue;
  std::scoped_lock guard(driver().lock);
  if (current() == nullptr) return kInvalidContext;
  *out = driver().devices[static_cast<std::size_t>(current()->device)].address_range(round_up(bytes, kSlabBytes));
  driver().pieces[*out] = {Piece::Kind::managed, current()->device, bytes, current(), nullptr};
  return kSuccess;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  FAKE_CALL(cuMemFree_v2);
  if (address == 0) return kSuccess;
  std::scoped_lock guard(driver().lock);
  const auto found = driver().pieces.find(address);
  if (found == driver().pieces.end()) return kInvalidValue;
  const Piece piece = found->second;
  DeviceMemory& memory = driver().devices[static_cast<std::size_t>(piece.device)];
  driver().pieces.erase(found);
  switch (piece.kind) {
    case Piece::Kind::linear:
      memory.release(address);
      break;
    case Piece::Kind::managed:
      memory.give_back_range(address, round_up(piece.bytes, kSlabBytes));
      break;
    case Piece::Kind::pooled:
      piece.pool->used -= round_up(piece.bytes, kStepBytes);
      memory.give_back_range(address, round_up(piece.bytes, kStepBytes));
      break;
    case Piece::Kind::graph:
      break;
  }
  return kSuccess;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  std::scoped_lock guard(driver().lock);
  const auto found = driver().pieces.find(address);
  if (found == driver().pieces.end()) return kNotFound;
  if (base != nullptr) *base = address;
  if (bytes != nullptr) *bytes = found->second.bytes;
  return kSuccess;
}

CUresult cuPointerGetAttribute(void* out, int attribute, CUdeviceptr address) {
  std::scoped_lock guard(driver().lock);
  const auto found = driver().pieces.find(address);
  if (found == driver().pieces.end() || attribute != kPointerDeviceOrdinal) return kInvalidValue;
  std::memcpy(out, &found->second.device, sizeof(int));
  return kSuccess;
}

CUresult cuMemHostAlloc(void** out, std::size_t bytes, unsigned) {
  FAKE_CALL(cuMemHostAlloc);
  return allocate_host(out, bytes);
}

CUresult cuMemAllocHost_v2(void** out, std::size_t bytes) {
  FAKE_CALL(cuMemAllocHost_v2);
  return allocate_host(out, bytes);
}

CUresult cuMemFreeHost(void* address) {
  FAKE_CALL(cuMemFreeHost);
  return drop_host(address, false);
}

CUresult cuMemHostRegister(void* address, std::size_t bytes, unsigned) {
  FAKE_CALL(cuMemHostRegister);
  return register_host(address, bytes);
}

CUresult cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned) {
  FAKE_CALL(cuMemHostRegister_v2);
  return register_host(address, bytes);
}

CUresult cuMemHostUnregister(void* address) {
  FAKE_CALL(cuMemHostUnregister);
  return drop_host(address, true);
}

CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* d) {
  FAKE_CALL(cuArrayCreate_v2);
  if (d == nullptr) return kInvalidValue;
  return make_array(out, array_bytes({d->width, d->height, 0, d->format, d->channels, 0}));
}

CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  FAKE_CALL(cuArray3DCreate_v2);
  return d == nullptr ? kInvalidValue : make_array(out, array_bytes(*d));
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned levels) {
  FAKE_CALL(cuMipmappedArrayCreate);
  if (d == nullptr || levels == 0) return kInvalidValue;
  std::uint64_t bytes = 0;
  CUDA_ARRAY3D_DESCRIPTOR level = *d;
  for (unsigned i = 0; i < levels; ++i) {
    bytes += array_bytes(level);
    level.width = level.width > 1 ? level.width / 2 : 1;
    level.height = level.height > 1 ? level.height / 2 : level.height;
    level.depth = level.depth > 1 ? level.depth / 2 : level.depth;
  }
  return make_array(out, bytes);
}

CUresult cuArrayDestroy(CUarray array) {
  FAKE_CALL(cuArrayDestroy);
  return drop_array(array);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  FAKE_CALL(cuMipmappedArrayDestroy);
  return drop_array(array);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address) {
  std::scoped_lock guard(driver().lock);
  const auto found = driver().pieces.find(address);
  if (found == driver().pieces.end()) return kInvalidValue;
  const std::uint64_t exported[2] = {address, found->second.bytes};
  std::memset(out, 0, sizeof *out);
  std::memcpy(out->bytes, exported, sizeof exported);
  return kSuccess;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned) {
  FAKE_CALL(cuIpcOpenMemHandle);
  return open_ipc(out, handle);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned) {
  FAKE_CALL(cuIpcOpenMemHandle_v2);
  return open_ipc(out, handle);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  FAKE_CALL(cuIpcCloseMemHandle);
  std::scoped_lock guard(driver().lock);
  if (current() == nullptr) return kInvalidContext;
  const auto found = current()->opened.find(address);
  if (found == current()->opened.end()) return kInvalidValue;
  if (--found->second == 0) {
    current()->opened.erase(found);
    driver().pieces.erase(address);
  }
  return kSuccess;
}

CUresult cuImportExternalMemory(CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* descriptor) {
  FAKE_CALL(cuImportExternalMemory);
  if (descriptor == nullptr) return kInvalidValue;
  return make_array(out, 0);
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  FAKE_CALL(cuDestroyExternalMemory);
  return drop_array(memory);
}
}
