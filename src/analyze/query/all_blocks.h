// Every block of a place with all that a filter may ask about it, so that a report can answer what nobody asked when it was
// written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/api.h"

namespace vramscope::analyze {

struct AllBlocks {
  std::vector<std::string> fields;     // of a kind: category, layer, op, ...
  std::vector<std::string> texts;      // every text once
  std::vector<std::uint32_t> kinds;    // for each kind and field an index into `texts`
  std::vector<Bytes> granted;          // of each kind
  std::vector<Bytes> requested;        // of each kind
  std::vector<std::uint64_t> id;       // of each block: in the order of their birth
  std::vector<std::uint32_t> kind;     // of each block
  std::vector<std::uint32_t> step;     // of each block: an index into `texts`
  std::vector<Moment> birth;           // of each block: it is live at every moment m with birth <= m < death
  std::vector<Moment> lives;           // of each block: death - birth; 0: to the end
  std::vector<std::uint64_t> born_us;  // of each block
  std::vector<std::uint64_t> time_us;  // of each moment; empty if only one was asked for
};

// Of the main place: all blocks, or those that are live at a moment. An error if the place has none.
Result<AllBlocks> all_blocks(const Engine& engine, std::optional<Moment> live_at);

}  // namespace vramscope::analyze
