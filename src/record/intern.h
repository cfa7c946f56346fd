// Ids for texts, so that a record holds four bytes instead of a name. Lock-free, grows by adding tables, never forgets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::record {

// `map` gives zeroed memory that a forked child finds zeroed again: a child defines its texts anew.
bool make_text_tables(void* (*map)(std::size_t));

// Before a second recording in the same process: its spool must define every text anew.
void forget_texts();

// A table from 64-bit hashes to 32-bit values. Hashes of 64 bits are taken as identity: with a million texts the chance of one
// collision is below 1 in 30 million.
struct Lookup {
  std::uint32_t value;  // 0: not there
  bool inserted;        // this call made the entry, the caller must define it
};
Lookup text_entry(std::uint64_t hash);

// Two ids that keep coming together, under one key of the caller's: {0, 0} where it is not known. Keys of different kinds must
// differ (use a seed).
struct Pair {
  std::uint32_t first;
  std::uint32_t second;
};
Pair find_pair(std::uint64_t hash);
void add_pair(std::uint64_t hash, Pair pair);

}  // namespace vramscope::record
