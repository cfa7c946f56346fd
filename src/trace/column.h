// Columns of integers as bytes. docs/format/vram-1.md describes the same grammar in words.
//
//   table  := id first rows columns column*          (varints)
//   column := field coding length data               (varints; coding = transform | shift << 4)
//   array  := packing bytes                          (what most columns' data is)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "support/bytes.h"

namespace vramscope::trace {

using Values = std::vector<std::uint64_t>;

// What was done to the values before they were packed.
enum class Transform : std::uint8_t {
  plain = 0,           // the value; signed ones as zigzag
  delta = 1,           // zigzag of the difference to the previous row, shifted right
  dict = 2,            // distinct values in order of appearance as differences, then one index per row
  by_site = 3,         // alloc address: zigzag of the difference to the last address of the same site, shifted right
  over_requested = 4,  // alloc granted: zigzag of the change of (granted - requested) at the same site
  back_reference = 5,  // free alloc: 0 = none, else how many alloc events ago
  only_unmatched = 6,  // like plain, but only the rows without a back reference
  list = 7,            // rows of several values: array of counts, then array of values
  text = 8,            // rows of bytes: array of lengths, then the bytes
  reused = 9,          // alloc address: how many frees of its size ago it was freed, or 0; then those with 0 as in by_site
};

enum class Packing : std::uint8_t { varint = 0, constant = 1, byte = 2, fixed = 3 };

struct TableHead {
  std::uint64_t id = 0;
  std::uint64_t first = 0;  // dictionaries: id of the first entry
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
};
void put_table(support::Buffer& out, const TableHead& head);
TableHead take_table(support::ByteReader& in);

struct Column {
  std::uint64_t field = 0;
  Transform transform{};
  unsigned shift = 0;
  support::ByteSpan data;
};
void put_column(support::Buffer& out, const Column& column);
Column take_column(support::ByteReader& in);

// Packs in the cheapest way; without constants, each value takes at least one byte.
enum Constants : bool { kNoConstant = false, kConstant = true };
void put_array(support::Buffer& out, std::span<const std::uint64_t> values, Constants constants = kConstant);
// False unless the bytes contain exactly as many values as `into` has room for.
bool take_array(support::ByteSpan bytes, std::span<std::uint64_t> into);
// An array of `count` values that is followed by other data: its length comes first.
void put_sized_array(support::Buffer& out, std::span<const std::uint64_t> values);
bool take_sized_array(support::ByteReader& in, std::span<std::uint64_t> into);

// Transforms that need only the column itself. `into` and `values` must not overlap.
Column encode_delta(std::uint64_t field, std::span<const std::uint64_t> values, support::Buffer& data);
Column encode_plain(std::uint64_t field, std::span<const std::uint64_t> values, support::Buffer& data,
                    Constants constants = kConstant);
Column encode_dict(std::uint64_t field, std::span<const std::uint64_t> values, support::Buffer& data);
// The smaller of plain and delta.
Column encode_number(std::uint64_t field, std::span<const std::uint64_t> values, support::Buffer& data);
// Inverts plain, delta and dict. False for other transforms and for bytes that do not fit.
bool decode_column(const Column& column, std::span<std::uint64_t> into);

// The parts of a dict column: its distinct values, and for each row the index of its value.
bool decode_dict(const Column& column, Values& distinct, std::span<std::uint64_t> index);

// How many low bits are zero in all differences: addresses are multiples of the allocator's alignment.
unsigned common_shift(std::span<const std::int64_t> differences);

}  // namespace vramscope::trace
