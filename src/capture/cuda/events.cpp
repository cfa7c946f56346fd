#include "capture/cuda/events.h"

#include "capture/cuda/owner.h"
#include "capture/stacks/stacks.h"

namespace vramscope::capture::cuda {

namespace {

record::AllocEvent event_of(const Allocation& allocation) {
  const bool cheap_call = (allocation.record_flags & spool::kFlagAsync) != 0;
  record::AllocEvent event;
  event.pool = allocation.pool;
  event.flags = allocation.record_flags;
  event.requested = allocation.requested;
  event.stack = stacks::capture();
  event.stream = allocation.stream;
  event.handle = allocation.handle;
  event.owner =
      cheap_call ? owner_of(allocation.caller.code) : owner_behind_runtime(allocation.caller.code, allocation.caller.stack);
  return event;
}

record::FreeEvent free_of(const blocks::Block& block, std::uint64_t stream, std::uint8_t flags) {
  record::FreeEvent event;
  event.pool = block.pool;
  event.flags = flags;
  event.address = block.key;
  event.bytes = block.bytes;
  event.stream = stream;
  event.count = (block.flags & blocks::kImported) == 0;
  return event;
}

bool is_silent(const blocks::Block& block) { return (block.flags & blocks::kSilent) != 0; }

}  // namespace

void record_allocation(const Allocation& allocation) {
  blocks::Block block;
  block.key = allocation.key;
  block.bytes = allocation.granted != 0 ? allocation.granted : allocation.requested;
  block.context = allocation.context;
  block.space = allocation.space;
  block.pool = allocation.pool;
  block.flags = allocation.block_flags;
  block.device = allocation.device;
  record::AllocEvent event = event_of(allocation);
  blocks::Block stale;
  if (!blocks::insert(block, &stale)) {
    // Its free could not be recognized: better not recorded than live forever.
    record::say_once("more than 114,000 driver allocations are live",
                     "further ones are not recorded; the device's own figures are complete");
    return;
  }
  if (stale.space != blocks::Space::none)
    record_free(stale);  // the driver handed it out again: it was freed in a way that we do not intercept
  event.address = block.key;
  event.granted = block.bytes;
  event.count = (block.flags & blocks::kImported) == 0;
  record::alloc(event);
}

void record_refusal(const Allocation& allocation) {
  record::AllocEvent event = event_of(allocation);
  if (!retries(allocation.caller.code)) event.flags |= spool::kFlagFinal;
  record::oom(event);
}

void record_free(const blocks::Block& block, std::uint64_t stream, std::uint8_t flags) {
  if (!is_silent(block)) record::free(free_of(block, stream, flags));
}

void cancel_free(const blocks::Block& block, std::uint64_t stream, std::uint8_t flags) {
  if (!is_silent(block)) record::cancel_free(free_of(block, stream, flags));
}

}  // namespace vramscope::capture::cuda
