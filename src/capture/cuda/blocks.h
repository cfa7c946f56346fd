// What is live at the driver level: address or handle -> size, pool, context, references.
//
// A fixed table, so that nothing is allocated: 64 parts with a spin lock each. If a part is full, further blocks are rejected.
#pragma once

#include <cstdint>

namespace vramscope::capture::cuda::blocks {

// Numbers that may coincide without referring to the same thing.
enum class Space : std::uint8_t { none = 0, device, host, handle, reservation, mapping, array };

enum Flags : std::uint8_t {
  kImported = 1,  // another process's memory: recorded, not counted
  kDying = 2,     // its free is recorded, and the call that frees it is in progress
  kPooled = 4,    // stream-ordered: lives as long as its device, not its context
  kSilent = 8,    // remembered only for references; no allocation was recorded
};

struct Block {
  std::uint64_t key = 0;
  std::uint64_t bytes = 0;
  std::uint64_t context = 0;  // mapping: the handle that is mapped; stream-ordered: the pool (MemPool*)
  std::uint16_t refs = 1;
  std::uint16_t mappings = 0;
  Space space = Space::none;
  std::uint8_t pool = 255;
  std::uint8_t flags = 0;
  std::int8_t device = -1;
};
static_assert(sizeof(Block) == 32);

// Stores a block; false if there is no room. `*previous` gets the block that was there under the same key (its free was
// missed), else Space::none.
bool insert(const Block& block, Block* previous);
// Removes a block and returns it.
bool take(Space space, std::uint64_t key, Block* block);
bool find(Space space, std::uint64_t key, Block* block);
// Calls change(block) under the lock; if it returns false, the block is removed. False if there is none.
bool update(Space space, std::uint64_t key, bool (*change)(Block& block, void* data), void* data);
// The same for all blocks.
void update_all(bool (*change)(Block& block, void* data), void* data);

}  // namespace vramscope::capture::cuda::blocks
