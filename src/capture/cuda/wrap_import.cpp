// Memory that belongs to another process or another API: recorded with its owner, never counted.
#include "capture/cuda/driver.h"
#include "capture/cuda/events.h"
#include "capture/cuda/place.h"

using namespace vramscope::capture::cuda;
using blocks::Block;
using blocks::Space;
namespace spool = vramscope::spool;

namespace {

bool add_ref(Block& block, void*) {
  ++block.refs;
  return true;
}

struct Closed {
  Block block;  // space none: others still have it open
};
bool drop_ref(Block& block, void* data) {
  if (block.refs > 1) {
    --block.refs;
    return true;
  }
  static_cast<Closed*>(data)->block = block;
  return false;
}

void record_import(Caller caller, Space space, std::uint64_t key, std::uint64_t bytes) {
  const Place place = current_place();
  Allocation allocation;
  allocation.caller = caller;
  allocation.space = space;
  allocation.key = key;
  allocation.requested = bytes;
  allocation.context = reinterpret_cast<std::uint64_t>(place.context);
  allocation.pool = family_pool(Family::imported, place.device);
  allocation.record_flags = spool::kFlagImported;
  allocation.block_flags = blocks::kImported;
  allocation.device = static_cast<std::int8_t>(place.device);
  record_allocation(allocation);
}

// Opening a handle again returns the same address and counts.
template <typename Forward>
CUresult opening(Caller caller, const CUdeviceptr* out, Forward forward) {
  if (!recording()) return forward();
  const CUresult result = forwarded(forward);
  if (result != kSuccess || blocks::update(Space::device, *out, add_ref, nullptr)) return result;
  std::size_t bytes = 0;
  if (VS_REAL(cuMemGetAddressRange_v2)(nullptr, &bytes, *out) != kSuccess) bytes = 0;
  record_import(caller, Space::device, *out, bytes);
  return result;
}

}  // namespace

extern "C" {

CUresult vs_cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned flags) {
  return opening(VS_CALLER, out, [&] { return VS_REAL(cuIpcOpenMemHandle)(out, handle, flags); });
}

CUresult vs_cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned flags) {
  return opening(VS_CALLER, out, [&] { return VS_REAL(cuIpcOpenMemHandle_v2)(out, handle, flags); });
}

CUresult vs_cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool pool, void* data) {
  return opening(VS_CALLER, out, [=] { return VS_REAL(cuMemPoolImportPointer)(out, pool, data); });
}

CUresult vs_cuIpcCloseMemHandle(CUdeviceptr address) {
  const auto forward = [=] { return VS_REAL(cuIpcCloseMemHandle)(address); };
  if (!recording()) return forward();
  Closed closed{};
  const bool known = blocks::update(Space::device, address, drop_ref, &closed);
  const bool last = known && closed.block.space != Space::none;
  if (last) record_free(closed.block);
  const CUresult result = forwarded(forward);
  if (result == kSuccess || !known) return result;
  if (last) {
    Block replaced;
    blocks::insert(closed.block, &replaced);
    cancel_free(closed.block);
  } else {
    blocks::update(Space::device, address, add_ref, nullptr);
  }
  return result;
}

CUresult vs_cuImportExternalMemory(CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* descriptor) {
  const auto forward = [=] { return VS_REAL(cuImportExternalMemory)(out, descriptor); };
  if (!recording()) return forward();
  const CUresult result = forwarded(forward);
  if (result == kSuccess && descriptor != nullptr)
    record_import(VS_CALLER, Space::array, reinterpret_cast<std::uint64_t>(*out), descriptor->bytes);
  return result;
}

CUresult vs_cuDestroyExternalMemory(CUexternalMemory memory) {
  const auto forward = [=] { return VS_REAL(cuDestroyExternalMemory)(memory); };
  return recording() ? freeing(Space::array, reinterpret_cast<std::uint64_t>(memory), 0, 0, forward) : forward();
}
}
