// A list of the chunks of a BFC allocator at one instant: what TensorFlow dumps when it runs out of memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "importers/profile.h"

namespace vramscope::importers {

struct Chunk {
  std::uint64_t address = 0, bytes = 0, requested = 0;
  bool in_use = false;
  std::string_view op;
};

// Adds the chunks of one allocator as blocks that are live, and the stretches that they fill without a gap as regions.
void add_chunks(Profile& profile, std::uint32_t pool, std::vector<Chunk> chunks);

}  // namespace vramscope::importers
