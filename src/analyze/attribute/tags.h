// Which blocks the tags of the Python side refer to.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyze/index/store.h"

namespace vramscope::analyze {

using TaggedBlocks = std::map<std::uint32_t, const Stamped<trace::Tag>*>;  // by block; the newest tag of each

// Tags come in bursts: the live blocks are looked up once for each burst.
inline constexpr std::uint64_t kEventsOfBurst = 4096;

struct ResolvedTags {
  TaggedBlocks blocks;
  std::uint64_t unmatched = 0;  // tags without a live block at their address
};

// A tag contains an address and refers to the block that was live there.
ResolvedTags resolve_tags(const Store& draft);

// The blocks that were tagged with one category, each of them perhaps several times.
std::vector<std::uint32_t> tagged_as(const Store& draft, trace::Category category);

}  // namespace vramscope::analyze
