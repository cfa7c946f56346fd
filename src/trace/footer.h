// The index at the end of a complete file: every block before it, so that a reader need not walk, nor trust damaged heads.
#pragma once

#include <vector>

#include "support/bytes.h"
#include "support/result.h"
#include "trace/block.h"

namespace vramscope::trace {

struct IndexEntry {
  std::uint64_t offset = 0;  // of the block's head
  BlockHead head;
};

// One footer block lists this many blocks at most; a longer index takes several, one after the other.
inline constexpr std::size_t kMaxIndexRows = 64u << 10;

void encode_footer(std::span<const IndexEntry> blocks, support::Buffer& payload);
Result<std::vector<IndexEntry>> decode_footer(support::ByteSpan payload);

}  // namespace vramscope::trace
