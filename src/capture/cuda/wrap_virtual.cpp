// Virtual memory management. Physical memory counts from cuMemCreate until its handle is released and its last mapping is
// removed, in either order; the free is recorded before the call that ends it.
#include "capture/cuda/driver.h"
#include "capture/cuda/events.h"
#include "capture/cuda/owner.h"

using namespace vramscope::capture::cuda;
using blocks::Block;
using blocks::Space;
namespace record = vramscope::record;
namespace spool = vramscope::spool;

namespace {

bool is_last(const Block& block) { return block.refs == 0 && block.mappings == 0; }

// One reference or mapping less; records the free if that was the last.
bool drop_ref(Block& block, void*) {
  if (block.refs > 0) --block.refs;
  if (is_last(block)) {
    block.flags |= blocks::kDying;
    record_free(block);
  }
  return true;
}
bool drop_mapping(Block& block, void*) {
  if (block.mappings > 0) --block.mappings;
  if (is_last(block)) {
    block.flags |= blocks::kDying;
    record_free(block);
  }
  return true;
}

void revive(Block& block) {
  if ((block.flags & blocks::kDying) == 0) return;
  block.flags = static_cast<std::uint8_t>(block.flags & ~blocks::kDying);
  cancel_free(block);
}
bool restore_ref(Block& block, void*) {
  ++block.refs;
  revive(block);
  return true;
}
bool restore_mapping(Block& block, void*) {
  ++block.mappings;
  revive(block);
  return true;
}

bool keep_unless_dying(Block& block, void*) { return (block.flags & blocks::kDying) == 0; }

struct Mapped {
  Caller caller;
  std::uint64_t bytes;
  Block first_of_import;  // space none unless this was the first mapping of an imported handle
};

// The size of imported memory is known when it is mapped.
bool add_mapping(Block& block, void* data) {
  auto& mapped = *static_cast<Mapped*>(data);
  ++block.mappings;
  if ((block.flags & blocks::kSilent) != 0) {
    block.flags = static_cast<std::uint8_t>(block.flags & ~blocks::kSilent);
    block.bytes = mapped.bytes;
    mapped.first_of_import = block;
  }
  return true;
}

void record_import(const Caller& caller, const Block& block) {
  record::AllocEvent event;
  event.pool = block.pool;
  event.flags = spool::kFlagImported;
  event.address = event.handle = block.key;
  event.requested = event.granted = block.bytes;
  event.owner = owner_of(caller.code);
  event.count = false;
  record::alloc(event);
}

// The mappings that begin in [address, address + bytes), in order.
template <typename Visit>
void for_mappings(CUdeviceptr address, std::size_t bytes, Visit visit) {
  Block mapping;
  for (std::uint64_t at = address; at < address + bytes && blocks::find(Space::mapping, at, &mapping) && mapping.bytes != 0;
       at += mapping.bytes) {
    visit(mapping);
  }
}

}  // namespace

extern "C" {

CUresult vs_cuMemCreate(CUmemGenericAllocationHandle* out, std::size_t bytes, const CUmemAllocationProp* prop,
                        unsigned long long flags) {
  const auto forward = [=] { return VS_REAL(cuMemCreate)(out, bytes, prop, flags); };
  if (!recording()) return forward();
  const CUresult result = forwarded(forward);
  // Works without a current context: the properties contain the device.
  const bool on_device = prop != nullptr && prop->location.type == kLocationDevice && prop->location.id >= 0;
  const int device = on_device ? prop->location.id : -1;
  Allocation allocation;
  allocation.caller = VS_CALLER;
  allocation.space = Space::handle;
  allocation.key = allocation.handle = result == kSuccess ? *out : 0;
  allocation.requested = bytes;
  allocation.pool = family_pool(on_device ? Family::physical : Family::pinned, device);
  allocation.device = static_cast<std::int8_t>(device);
  record_outcome(result, allocation);
  return result;
}

CUresult vs_cuMemRelease(CUmemGenericAllocationHandle handle) {
  const auto forward = [=] { return VS_REAL(cuMemRelease)(handle); };
  if (!recording()) return forward();
  const bool known = blocks::update(Space::handle, handle, drop_ref, nullptr);
  const CUresult result = forwarded(forward);
  if (known) blocks::update(Space::handle, handle, result == kSuccess ? keep_unless_dying : restore_ref, nullptr);
  return result;
}

CUresult vs_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  const auto forward = [=] { return VS_REAL(cuMemRetainAllocationHandle)(out, address); };
  if (!recording()) return forward();
  const CUresult result = forwarded(forward);
  if (result == kSuccess) blocks::update(Space::handle, *out, restore_ref, nullptr);
  return result;
}

CUresult vs_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* os_handle, int type) {
  const auto forward = [=] { return VS_REAL(cuMemImportFromShareableHandle)(out, os_handle, type); };
  if (!recording()) return forward();
  const CUresult result = forwarded(forward);
  if (result != kSuccess) return result;
  if (blocks::update(Space::handle, *out, restore_ref, nullptr)) return result;
  Block block, replaced;
  block.key = *out;
  block.space = Space::handle;
  block.flags = blocks::kImported | blocks::kSilent;
  block.pool = family_pool(Family::imported, -1);
  blocks::insert(block, &replaced);
  return result;
}

// A multicast object has no memory of its own: what is bound to it was created by cuMemCreate, and counts there. The processes
// that import the object record it as imported, so the one that creates it does too. An out-of-memory error is not reported: no
// memory of a device was asked for.
CUresult vs_cuMulticastCreate(CUmemGenericAllocationHandle* out, const CUmulticastObjectProp* prop) {
  const auto forward = [=] { return VS_REAL(cuMulticastCreate)(out, prop); };
  if (!recording()) return forward();
  const CUresult result = forwarded(forward);
  if (result != kSuccess || prop == nullptr) return result;
  Allocation allocation;
  allocation.caller = VS_CALLER;
  allocation.space = Space::handle;
  allocation.key = allocation.handle = *out;
  allocation.requested = prop->bytes;
  allocation.pool = family_pool(Family::imported, -1);
  allocation.record_flags = spool::kFlagImported;
  allocation.block_flags = blocks::kImported;
  record_allocation(allocation);
  return result;
}

CUresult vs_cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                     unsigned long long flags) {
  const auto forward = [=] { return VS_REAL(cuMemMap)(address, bytes, offset, handle, flags); };
  if (!recording()) return forward();
  const CUresult result = forwarded(forward);
  if (result != kSuccess) return result;
  Mapped mapped{VS_CALLER, bytes, {}};
  blocks::update(Space::handle, handle, add_mapping, &mapped);
  if (mapped.first_of_import.space != Space::none) record_import(mapped.caller, mapped.first_of_import);
  Block mapping, replaced;
  mapping.key = address;
  mapping.bytes = bytes;
  mapping.context = handle;
  mapping.space = Space::mapping;
  mapping.pool = family_pool(Family::reservation, -1);
  blocks::insert(mapping, &replaced);
  record::region(mapping.pool, address, bytes, false);
  return result;
}

CUresult vs_cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  const auto forward = [=] { return VS_REAL(cuMemUnmap)(address, bytes); };
  if (!recording()) return forward();
  for_mappings(address, bytes, [](const Block& m) { blocks::update(Space::handle, m.context, drop_mapping, nullptr); });
  const CUresult result = forwarded(forward);
  for_mappings(address, bytes, [=](const Block& m) {
    blocks::update(Space::handle, m.context, result == kSuccess ? keep_unless_dying : restore_mapping, nullptr);
    Block gone;
    if (result == kSuccess && blocks::take(Space::mapping, m.key, &gone)) record::region(m.pool, m.key, m.bytes, true);
  });
  return result;
}

CUresult vs_cuMemAddressReserve(CUdeviceptr* out, std::size_t bytes, std::size_t alignment, CUdeviceptr hint,
                                unsigned long long flags) {
  const auto forward = [=] { return VS_REAL(cuMemAddressReserve)(out, bytes, alignment, hint, flags); };
  if (!recording()) return forward();
  const CUresult result = forwarded(forward);
  Allocation allocation;
  allocation.caller = VS_CALLER;
  allocation.space = Space::reservation;
  allocation.key = result == kSuccess ? *out : 0;
  allocation.requested = bytes;
  allocation.pool = family_pool(Family::reservation, -1);
  if (result == kSuccess) record_allocation(allocation);
  return result;
}

CUresult vs_cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  const auto forward = [=] { return VS_REAL(cuMemAddressFree)(address, bytes); };
  return recording() ? freeing(Space::reservation, address, 0, 0, forward) : forward();
}
}
