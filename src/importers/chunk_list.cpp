#include "importers/chunk_list.h"

#include <algorithm>

namespace vramscope::importers {

void add_chunks(Profile& profile, std::uint32_t pool, std::vector<Chunk> chunks) {
  std::ranges::sort(chunks, {}, &Chunk::address);
  for (std::size_t first = 0; first < chunks.size();) {
    std::size_t end = first + 1;
    std::uint64_t bytes = chunks[first].bytes;
    for (; end < chunks.size() && chunks[end].address == chunks[first].address + bytes; ++end) bytes += chunks[end].bytes;
    profile.had_region(pool, chunks[first].address, bytes);
    for (; first < end; ++first) {
      const Chunk& chunk = chunks[first];
      if (chunk.in_use) profile.was_live(pool, chunk.address, chunk.requested, chunk.bytes, {.op = profile.text(chunk.op)});
    }
  }
  profile.lacks_times();
  profile.lacks("steps, layers, dtypes, shapes and stacks");
}

}  // namespace vramscope::importers
