// Omits detail from a chunk so that no count changes: what is live at its borders, how much was allocated, and how high each
// pool rose in each step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/gen/schema.h"
#include "trace/reader.h"

namespace vramscope::trace {

// A chunk whose allocations know their ordinals in the recording; frees refer to those.
struct RecordedChunk {
  Chunk chunk;
  std::vector<std::uint64_t> ordinals;
};

// The highest live bytes of a pool in one segment: the events between two marks of a step, a batch or an epoch.
struct Peak {
  std::size_t event = 0;  // index in its chunk
  PoolId pool{};
  std::uint64_t bytes = 0;
};

// Watches a chunk as it is filled.
class PeakTracker {
 public:
  void alloc(PoolId pool, std::uint64_t bytes, std::size_t event);
  void free(PoolId pool, std::uint64_t bytes);
  // A mark ends a segment; what is live there counts for the next one.
  void boundary(std::size_t event);
  // The peaks of the chunk that is now complete, by event; pools that allocated nothing have nothing to omit.
  std::vector<Peak> take();

 private:
  struct OfPool {
    std::uint64_t live = 0;
    bool active = false;  // allocated something in this chunk
    Peak peak;            // of the segment so far
  };
  std::vector<OfPool> pools_;
  std::vector<Peak> peaks_;
};

// True for the marks between which each pool's peak is kept.
bool ends_segment(MarkKind kind);

// The chunk with an `omitted` event, which omits nothing yet, at each peak.
RecordedChunk with_peaks(const Chunk& chunk, std::span<const Peak> peaks);

// Adds the events of the next chunk of the recording.
void join(RecordedChunk& to, const RecordedChunk& next);

// What is omitted; each level includes the previous one.
enum class Detail : std::uint8_t {
  full,
  pairs,   // allocations that were freed in the same chunk
  steps,   // marks below steps that begin and end in the chunk; all but the first, highest and last sample
  totals,  // marks of steps and batches, and one peak per pool instead of one per step
};
RecordedChunk thin(const RecordedChunk& in, std::span<const Site> sites, Detail detail);

}  // namespace vramscope::trace
