// The index at the end of a complete file: it lists every block, so that a reader neither has to walk the file nor to trust
// damaged heads.
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

// One footer block lists at most this many blocks; a longer index takes several, one after the other.
inline constexpr std::size_t kMaxIndexRows = 64u << 10;

void encode_footer(std::span<const IndexEntry> blocks, support::Buffer& payload);
Result<std::vector<IndexEntry>> decode_footer(support::ByteSpan payload);

}  // namespace vramscope::trace
