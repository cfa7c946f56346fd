#include "trace/footer.h"

#include "trace/column.h"
#include "trace/values.h"

namespace vramscope::trace {
namespace {

using support::Buffer;
using support::ByteReader;
using support::ByteSpan;

constexpr std::uint64_t kIndexTable = 1;

// Calls f(field, pointer to member) for each member of a block's head.
template <typename F>
void for_each_head_field(F&& f) {
  f(2, &BlockHead::type);
  f(3, &BlockHead::codec);
  f(4, &BlockHead::flags);
  f(5, &BlockHead::stored_bytes);
  f(6, &BlockHead::raw_bytes);
  f(7, &BlockHead::first_event);
  f(8, &BlockHead::first_alloc);
  f(9, &BlockHead::events);
  f(10, &BlockHead::allocs);
  f(11, &BlockHead::payload_checksum);
}

}  // namespace

void encode_footer(std::span<const IndexEntry> blocks, Buffer& payload) {
  payload.clear();
  put_table(payload, {kIndexTable, 0, blocks.size(), 11});
  Buffer data;
  Values values(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) values[i] = blocks[i].offset;
  put_column(payload, encode_number(1, values, data));
  for_each_head_field([&](std::uint64_t field, auto member) {
    for (std::size_t i = 0; i < blocks.size(); ++i) values[i] = blocks[i].head.*member;
    put_column(payload, encode_number(field, values, data));
  });
}

Result<std::vector<IndexEntry>> decode_footer(ByteSpan payload) {
  ByteReader in(payload);
  const TableHead table = take_table(in);
  // Offsets differ, so a row has at least one byte.
  if (table.id != kIndexTable || table.rows > in.left() || table.rows > kMaxIndexRows) return fail("it is not an index");
  std::vector<IndexEntry> blocks(static_cast<std::size_t>(table.rows));
  Values values(blocks.size());
  bool good = true;
  for (std::uint64_t i = 0; i < table.columns && good; ++i) {
    const Column column = take_column(in);
    if (column.field == 0 || column.field > 11) continue;
    good = !in.failed() && decode_column(column, values);
    for (std::size_t row = 0; row < blocks.size() && column.field == 1; ++row) blocks[row].offset = values[row];
    for_each_head_field([&]<typename T>(std::uint64_t field, T BlockHead::* member) {
      if (field != column.field) return;
      for (std::size_t row = 0; row < blocks.size(); ++row) {
        good = good && values[row] <= value_limit<T>();
        blocks[row].head.*member = static_cast<T>(values[row]);
      }
    });
  }
  if (!good || in.failed()) return fail("a column is inconsistent");
  return blocks;
}

}  // namespace vramscope::trace
