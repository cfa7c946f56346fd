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

// A second key for a text that is already defined: raw bytes of a shape.
std::uint32_t find_alias(std::uint64_t hash);
void add_alias(std::uint64_t hash, std::uint32_t value);

}  // namespace vramscope::record
