// Ids for texts, so that a record stores four bytes instead of a name. Lock-free, grows by adding tables, never forgets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::record {

// `map` returns zeroed memory that is zeroed again in a forked child, so that the child defines its texts again.
bool make_text_tables(void* (*map)(std::size_t));

// Before a second recording in the same process: its spool must define every text again.
void forget_texts();

// A table from 64-bit hashes to 32-bit values. Equal hashes are considered equal texts: with a million texts, the probability
// of a collision is below 1 in 30 million.
struct Lookup {
  std::uint32_t value;  // 0: not there
  bool inserted;        // this call created the entry, so the caller must define it
};
Lookup text_entry(std::uint64_t hash);

// Two ids that occur together repeatedly, under one key of the caller's: {0, 0} if unknown. Keys of different kinds must differ
// (use a seed).
struct Pair {
  std::uint32_t first;
  std::uint32_t second;
};
Pair find_pair(std::uint64_t hash);
void add_pair(std::uint64_t hash, Pair pair);

}  // namespace vramscope::record
