#include <tsl/robin_map.h>

#include <algorithm>
#include <utility>

#include "trace/chunk.h"
#include "trace/chunk_layout.h"
#include "trace/column.h"
#include "trace/freed_addresses.h"
#include "trace/values.h"

namespace vramscope::trace {
namespace {

using support::Buffer;
using support::zigzag;

template <typename Column>
Values values_of(const Column& column) {
  Values values(column.size());
  std::ranges::transform(column, values.begin(), [](auto value) { return to_value(value); });
  return values;
}

// Where the last alloc event of the same site was in this chunk, or kFirst.
constexpr std::uint32_t kFirst = ~std::uint32_t{0};
std::vector<std::uint32_t> last_of_site(const std::vector<SiteId>& site) {
  tsl::robin_map<std::uint32_t, std::uint32_t> seen;
  std::vector<std::uint32_t> last(site.size());
  for (std::size_t i = 0; i < site.size(); ++i) {
    const auto [found, inserted] = seen.try_emplace(std::to_underlying(site[i]), static_cast<std::uint32_t>(i));
    last[i] = inserted ? kFirst : std::exchange(found.value(), static_cast<std::uint32_t>(i));
  }
  return last;
}

// For each alloc event: how many frees of blocks of its size ago its address was freed in this chunk; 0 = not recently.
Values freed_ago(const Chunk& chunk) {
  const AllocColumns& born = chunk.tables.alloc;
  FreedAddresses freed;
  std::vector<std::uint32_t> list;
  Values ago;
  std::size_t frees = 0;
  for (const EventKind kind : chunk.kind) {
    if (kind == EventKind::alloc) {
      list.push_back(freed.list_of(born.granted[list.size()]));
      ago.push_back(freed.find(list.back(), born.address[ago.size()]));
    } else if (kind == EventKind::free_) {
      const std::uint64_t row = chunk.tables.free.alloc[frees++] - chunk.first_alloc;
      if (row < list.size()) freed.add(list[row], born.address[row]);
    }
  }
  return ago;
}

// Addresses are encoded relative to the last one of the same site, or as a recently freed one, which takes longer to read and
// is used only if it is clearly more predictable.
void encode_addresses(const Chunk& chunk, bool thinned, const std::vector<std::uint32_t>& last_of_its_site, Buffer& payload) {
  const AllocColumns& table = chunk.tables.alloc;
  std::vector<std::int64_t> moved(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::uint32_t last = last_of_its_site[i];
    const std::uint64_t near = last != kFirst ? table.address[last] : i > 0 ? table.address[i - 1] : 0;
    moved[i] = static_cast<std::int64_t>(table.address[i] - near);
  }
  Values ago;
  if (!thinned) ago = freed_ago(chunk);  // if allocations are omitted, ordinals are not row numbers
  const auto clearly = static_cast<std::ptrdiff_t>(table.size() / 8);
  const bool reused = std::ranges::count(ago, 1u) > std::ranges::count(moved, 0) + clearly;
  Buffer data;
  if (reused) {
    put_sized_array(data, ago);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < moved.size(); ++i)
      if (ago[i] == 0) moved[kept++] = moved[i];
    moved.resize(kept);
  }
  const unsigned shift = common_shift(moved);
  Values coded(moved.size());
  std::ranges::transform(moved, coded.begin(), [&](std::int64_t difference) { return zigzag(difference >> shift); });
  put_array(data, coded);
  put_column(payload, {kAllocAddress, reused ? Transform::reused : Transform::by_site, shift, data});
}

void encode_allocs(const Chunk& chunk, bool thinned, std::span<const Site> sites, Buffer& payload) {
  const AllocColumns& table = chunk.tables.alloc;
  const std::size_t rows = table.size();
  put_table(payload, {std::to_underlying(EventKind::alloc), 0, rows, 4});
  Buffer data;
  put_column(payload, encode_dict(kAllocSite, values_of(table.site), data));

  const std::vector<std::uint32_t> last = last_of_site(table.site);
  encode_addresses(chunk, thinned, last, payload);

  Values slack_change(rows);
  Values slack(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    slack[i] = table.granted[i] - sites[std::to_underlying(table.site[i])].requested;
    slack_change[i] = zigzag(static_cast<std::int64_t>(slack[i] - (last[i] != kFirst ? slack[last[i]] : 0)));
  }
  data.clear();
  put_array(data, slack_change);
  put_column(payload, {kAllocGranted, Transform::over_requested, 0, data});
  put_column(payload, encode_dict(kAllocStep, values_of(table.step), data));
}

void encode_frees(const Chunk& chunk, std::uint64_t first_alloc, std::span<const std::uint64_t> ordinals, Buffer& payload) {
  const FreeColumns& table = chunk.tables.free;
  put_table(payload, {std::to_underlying(EventKind::free_), 0, table.size(), 4});
  Values back;
  Values address;
  Values pool;
  back.reserve(table.size());
  std::uint64_t next = first_alloc;  // ordinal of the next alloc event
  std::size_t allocs = 0;
  for (const EventKind kind : chunk.kind) {
    if (kind == EventKind::alloc) {
      next = (ordinals.empty() ? next : ordinals[allocs]) + 1;
      ++allocs;
    } else if (kind == EventKind::free_) {
      const std::size_t row = back.size();
      const std::uint64_t alloc = table.alloc[row];
      back.push_back(alloc == kNone ? 0 : next - alloc);
      if (alloc != kNone) continue;
      address.push_back(table.address[row]);
      pool.push_back(to_value(table.pool[row]));
    }
  }
  Buffer data;
  data.clear();
  put_array(data, back);
  put_column(payload, {kFreeAlloc, Transform::back_reference, 0, data});
  data.clear();
  put_array(data, address);
  put_column(payload, {kFreeAddress, Transform::only_unmatched, 0, data});
  data.clear();
  put_array(data, pool);
  put_column(payload, {kFreePool, Transform::only_unmatched, 0, data});
  put_column(payload, encode_dict(kFreeStream, values_of(table.stream), data));
}

template <typename Table>
void encode_other(EventKind kind, const Table& table, Buffer& payload) {
  std::uint64_t columns = 0;
  for_each_column(table, [&](std::uint64_t, std::string_view, std::string_view, const auto&) { ++columns; });
  put_table(payload, {std::to_underlying(kind), 0, table.size(), columns});
  Buffer data;
  for_each_column(table, [&](std::uint64_t field, std::string_view, std::string_view, const auto& column) {
    put_column(payload, encode_number(field, values_of(column), data));
  });
}

}  // namespace

void encode_chunk(const Chunk& chunk, std::span<const std::uint64_t> ordinals, std::span<const Site> sites, Buffer& payload) {
  payload.clear();
  Buffer data;
  put_table(payload, {kCommonTable, 0, chunk.kind.size(), ordinals.empty() ? 4u : 5u});
  put_column(payload, encode_plain(kCommonKind, values_of(chunk.kind), data));
  put_column(payload, encode_delta(kCommonSeq, chunk.seq, data));
  put_column(payload, encode_delta(kCommonTime, chunk.time_us, data));
  put_column(payload, encode_dict(kCommonThread, values_of(chunk.thread), data));
  if (!ordinals.empty()) put_column(payload, encode_delta(kCommonOrdinal, ordinals, data));

  for_each_table(chunk.tables, [&]<typename Table>(EventKind kind, const Table& table) {
    if (table.size() == 0) return;
    if constexpr (std::is_same_v<Table, AllocColumns>) {
      encode_allocs(chunk, !ordinals.empty(), sites, payload);
    } else if constexpr (std::is_same_v<Table, FreeColumns>) {
      encode_frees(chunk, chunk.first_alloc, ordinals, payload);
    } else {
      encode_other(kind, table, payload);
    }
  });
}

}  // namespace vramscope::trace
