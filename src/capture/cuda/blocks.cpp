#include "capture/cuda/blocks.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>

namespace vramscope::capture::cuda::blocks {

namespace {

constexpr std::size_t kParts = 64;
constexpr std::size_t kPlaces = 2048;  // per part; 4 MiB in all, touched as it fills
constexpr std::size_t kFull = kPlaces * 7 / 8;
constexpr int kPatience = 1 << 22;

struct Part {
  std::atomic<std::uint32_t> locked;
  std::uint32_t used;
  Block places[kPlaces];
};

std::atomic<Part*> g_parts;

// A forked child cannot use the parent's device memory: the kernel gives it an empty table.
Part* parts() {
  Part* there = g_parts.load(std::memory_order_acquire);
  if (__builtin_expect(there != nullptr, 1)) return there;
  constexpr std::size_t bytes = kParts * sizeof(Part);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_WIPEONFORK);
  if (g_parts.compare_exchange_strong(there, static_cast<Part*>(memory), std::memory_order_acq_rel))
    return static_cast<Part*>(memory);
  munmap(memory, bytes);
  return there;
}

std::uint64_t mixed(Space space, std::uint64_t key) {
  std::uint64_t hash = (key ^ static_cast<std::uint64_t>(space) << 57) * 0x9e3779b97f4a7c15;
  hash ^= hash >> 32;
  return hash * 0xd6e8feb86659fd93;
}
std::size_t home_of(std::uint64_t hash) { return (hash >> 20) % kPlaces; }

// Gives up after a while: a signal handler that interrupted the holder must not wait forever.
bool lock(Part& part) {
  for (int spin = 0; spin < kPatience; ++spin) {
    if (part.locked.load(std::memory_order_relaxed) == 0 && part.locked.exchange(1, std::memory_order_acquire) == 0) return true;
    __builtin_ia32_pause();
  }
  return false;
}
void unlock(Part& part) { part.locked.store(0, std::memory_order_release); }

Block* locate(Part& part, std::uint64_t hash, Space space, std::uint64_t key) {
  for (std::size_t at = home_of(hash);; at = (at + 1) % kPlaces) {
    Block& block = part.places[at];
    if (block.space == Space::none) return nullptr;
    if (block.key == key && block.space == space) return &block;
  }
}

// Closes the gap, so that searches may stop at the first empty slot.
void erase(Part& part, Block& block) {
  auto gap = static_cast<std::size_t>(&block - part.places);
  for (std::size_t at = (gap + 1) % kPlaces; part.places[at].space != Space::none; at = (at + 1) % kPlaces) {
    const std::size_t home = home_of(mixed(part.places[at].space, part.places[at].key));
    const bool movable = (at - home + kPlaces) % kPlaces >= (at - gap + kPlaces) % kPlaces;
    if (!movable) continue;
    part.places[gap] = part.places[at];
    gap = at;
  }
  part.places[gap] = {};
  part.places[gap].space = Space::none;
  --part.used;
}

// Runs body(part, hash) with the part of this key locked. False if there is no table or the lock could not be taken in time.
template <typename Body>
bool with_part(Space space, std::uint64_t key, Body body) {
  Part* all = parts();
  if (all == nullptr) return false;
  const std::uint64_t hash = mixed(space, key);
  Part& part = all[hash >> 58];
  if (!lock(part)) return false;
  const bool result = body(part, hash);
  unlock(part);
  return result;
}

}  // namespace

bool insert(const Block& block, Block* previous) {
  previous->space = Space::none;
  return with_part(block.space, block.key, [&](Part& part, std::uint64_t hash) {
    if (Block* there = locate(part, hash, block.space, block.key)) {
      if ((there->flags & kDying) == 0) *previous = *there;
      *there = block;
      return true;
    }
    if (part.used >= kFull) return false;
    std::size_t at = home_of(hash);
    while (part.places[at].space != Space::none) at = (at + 1) % kPlaces;
    part.places[at] = block;
    ++part.used;
    return true;
  });
}

bool take(Space space, std::uint64_t key, Block* block) {
  return with_part(space, key, [&](Part& part, std::uint64_t hash) {
    Block* there = locate(part, hash, space, key);
    if (there == nullptr) return false;
    *block = *there;
    erase(part, *there);
    return true;
  });
}

bool find(Space space, std::uint64_t key, Block* block) {
  return with_part(space, key, [&](Part& part, std::uint64_t hash) {
    const Block* there = locate(part, hash, space, key);
    if (there != nullptr) *block = *there;
    return there != nullptr;
  });
}

bool update(Space space, std::uint64_t key, bool (*change)(Block&, void*), void* data) {
  return with_part(space, key, [&](Part& part, std::uint64_t hash) {
    Block* there = locate(part, hash, space, key);
    if (there == nullptr) return false;
    if (!change(*there, data)) erase(part, *there);
    return true;
  });
}

void update_all(bool (*change)(Block&, void*), void* data) {
  Part* all = g_parts.load(std::memory_order_acquire);
  for (std::size_t i = 0; all != nullptr && i < kParts; ++i) {
    Part& part = all[i];
    if (!lock(part)) continue;
    for (std::size_t at = 0; part.used != 0 && at < kPlaces;) {
      Block& block = part.places[at];
      // Erasing moves another block here: check the same slot again.
      if (block.space != Space::none && !change(block, data))
        erase(part, block);
      else
        ++at;
    }
    unlock(part);
  }
}

}  // namespace vramscope::capture::cuda::blocks
