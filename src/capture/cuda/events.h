// From a driver call to records: an allocation is recorded after the call, a free before it (canceled if the driver rejects
// it), so that an address that another thread gets at once is never live twice.
#pragma once

#include <cstdint>

#include "capture/cuda/abi.h"
#include "capture/cuda/blocks.h"
#include "capture/cuda/pools.h"
#include "record/recorder.h"

// The return address of the wrapper, and its position on the stack. Only in the body of a wrapper itself.
#define VS_CALLER \
  ::vramscope::capture::cuda::Caller { __builtin_return_address(0), __builtin_frame_address(0) }

namespace vramscope::capture::cuda {

struct Caller {
  const void* code;
  const void* stack;
};

// Whether this call should be recorded: not if nothing is recorded, and not if the driver calls itself inside a call of ours.
inline bool recording() { return record::active() && !record::busy(); }

// Forwards with the thread marked, so that what the driver does inside is not recorded a second time.
template <typename Forward>
CUresult forwarded(Forward forward) {
  record::enter();
  const CUresult result = forward();
  record::leave();
  return result;
}

struct Allocation {
  Caller caller;
  blocks::Space space = blocks::Space::device;
  std::uint64_t key = 0;  // address or handle
  std::uint64_t requested = 0;
  std::uint64_t granted = 0;  // 0 = as requested
  std::uint64_t context = 0;
  std::uint64_t stream = 0;
  std::uint64_t handle = 0;
  std::uint8_t pool = record::kNoPool;
  std::uint8_t record_flags = 0;  // spool::RecordFlags
  std::uint8_t block_flags = 0;   // blocks::Flags
  std::int8_t device = -1;
};
void record_allocation(const Allocation& allocation);
void record_refusal(const Allocation& allocation);  // out of memory
// After the call: one of the two, or nothing.
inline void record_outcome(CUresult result, const Allocation& allocation) {
  if (result == kSuccess)
    record_allocation(allocation);
  else if (result == kOutOfMemory)
    record_refusal(allocation);
}

void record_free(const blocks::Block& block, std::uint64_t stream = 0, std::uint8_t flags = 0);
void cancel_free(const blocks::Block& block, std::uint64_t stream = 0, std::uint8_t flags = 0);

// A call that frees `key`. `*freed` gets the block, with space none if it was not ours.
template <typename Forward>
CUresult freeing(blocks::Space space, std::uint64_t key, std::uint64_t stream, std::uint8_t flags, Forward forward,
                 blocks::Block* freed = nullptr) {
  blocks::Block block;
  if (key == 0 || !blocks::take(space, key, &block)) return forwarded(forward);
  record_free(block, stream, flags);
  const CUresult result = forwarded(forward);
  if (result != kSuccess) {
    blocks::Block replaced;
    blocks::insert(block, &replaced);
    cancel_free(block, stream, flags);
  }
  if (freed != nullptr) *freed = block;
  return result;
}

}  // namespace vramscope::capture::cuda
