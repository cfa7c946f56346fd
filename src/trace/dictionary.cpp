#include "trace/dictionary.h"

#include <algorithm>
#include <utility>

#include "trace/block.h"
#include "trace/column.h"
#include "trace/values.h"

namespace vramscope::trace {
namespace {

using support::Buffer;
using support::ByteReader;
using support::ByteSpan;

constexpr std::size_t kBlockBytes = 1u << 20;  // a block is closed when it is longer
constexpr std::size_t kBatchRows = 4096;
constexpr std::uint64_t kMaxMissing = 1u << 20;  // placeholders in one place
constexpr std::uint64_t kStringDictionary = 1;

template <typename Entry>
constexpr std::size_t most_entries = kMaxEntries;
template <>
constexpr std::size_t most_entries<Pool> = kMaxPools;

template <typename T>
constexpr bool is_list = false;
template <typename T>
constexpr bool is_list<std::vector<T>> = true;

Column encode_text(std::uint64_t field, std::span<const std::string> rows, Buffer& data) {
  data.clear();
  Values lengths;
  for (const std::string& row : rows) lengths.push_back(row.size());
  put_sized_array(data, lengths);
  for (const std::string& row : rows) support::put_bytes(data, support::bytes_of(row));
  return {field, Transform::text, 0, data};
}

template <typename Field, typename Entry>
Column encode_field(std::uint64_t field, std::span<const Entry> rows, Buffer& data, Field Entry::* member, Constants constants) {
  if constexpr (is_list<Field>) {
    data.clear();
    Values counts;
    Values flat;
    for (const Entry& row : rows) {
      counts.push_back((row.*member).size());
      for (const auto value : row.*member) flat.push_back(to_value(value));
    }
    put_sized_array(data, counts);
    put_array(data, flat, kNoConstant);
    return {field, Transform::list, 0, data};
  } else {
    Values values;
    values.reserve(rows.size());
    for (const Entry& row : rows) values.push_back(to_value(row.*member));
    return constants == kConstant ? encode_number(field, values, data) : encode_plain(field, values, data, constants);
  }
}

template <typename Entry>
void encode_columns(std::span<const Entry> rows, Buffer& payload, Constants constants) {
  Buffer data;
  for_each_field<Entry>(
      [&](std::uint64_t field, auto member) { put_column(payload, encode_field(field, rows, data, member, constants)); });
}

template <typename Entry>
void encode_entries(std::uint64_t id, std::size_t first, std::span<const Entry> rows, Buffer& payload) {
  std::uint64_t columns = 0;
  for_each_field<Entry>([&](std::uint64_t, auto) { ++columns; });
  put_table(payload, {id, first, rows.size(), columns});
  const std::size_t head = payload.size();
  encode_columns(rows, payload, kConstant);
  // Entries that differ by the same step (requests of 256, 512, 768 bytes; threads 1, 2, 3) are constants after the delta and
  // take no bytes at all; readers refuse that, since they bound their memory by bytes.
  if (payload.size() - head >= rows.size()) return;
  payload.resize(head);
  encode_columns(rows, payload, kNoConstant);
}

std::size_t weight(const std::string& row) { return row.size() + 1; }
std::size_t weight(const Stack& row) { return (row.frames.size() + 1) * 4; }
template <typename Entry>
std::size_t weight(const Entry&) {
  return 16;
}

// The next rows of one dictionary, if there are any and the block has room.
template <typename Entry, typename Encode>
void add(const std::vector<Entry>& all, std::size_t& written, Buffer& payload, Encode encode) {
  while (written < all.size() && payload.size() < kBlockBytes) {
    std::size_t rows = 0;
    for (std::size_t bytes = 0; rows < kBatchRows && written + rows < all.size() && bytes < kBlockBytes; ++rows) {
      bytes += weight(all[written + rows]);
    }
    encode(written, std::span(all).subspan(written, rows));
    written += rows;
  }
}

bool decode_text(const Column& column, std::vector<std::string>& rows) {
  ByteReader reader(column.data);
  Values lengths(rows.size());
  if (column.transform != Transform::text || !take_sized_array(reader, lengths)) return false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (lengths[i] > kMaxStringBytes) return false;
    const ByteSpan text = reader.bytes(lengths[i]);
    rows[i].assign(reinterpret_cast<const char*>(text.data()), text.size());
  }
  return !reader.failed() && reader.left() == 0;
}

template <typename Field, typename Entry>
bool decode_field(const Column& column, std::vector<Entry>& rows, Field Entry::* member) {
  if constexpr (is_list<Field>) {
    using Element = Field::value_type;
    ByteReader reader(column.data);
    Values counts(rows.size());
    if (column.transform != Transform::list || !take_sized_array(reader, counts)) return false;
    std::uint64_t total = 0;
    for (const std::uint64_t count : counts) {
      if (count > kMaxRawBytes) return false;
      total += count;
    }
    const ByteSpan array = reader.bytes(reader.left());
    // Never packed as a constant, so that a few bytes cannot require a lot of memory.
    if (total > array.size()) return false;
    Values flat(static_cast<std::size_t>(total));
    if (!take_array(array, flat)) return false;
    auto at = flat.begin();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::uint64_t n = counts[i]; n > 0; --n, ++at) {
        if (*at > value_limit<Element>()) return false;
        (rows[i].*member).push_back(from_value<Element>(*at));
      }
    }
    return true;
  } else {
    Values values(rows.size());
    if (!decode_column(column, values)) return false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (values[i] > value_limit<Field>()) return false;
      rows[i].*member = from_value<Field>(values[i]);
    }
    return true;
  }
}

template <typename Entry>
bool decode_column_of(const Column& column, std::vector<Entry>& rows) {
  bool good = true;
  for_each_field<Entry>([&](std::uint64_t field, auto member) {
    if (field == column.field) good = decode_field(column, rows, member);
  });
  return good;
}

bool known(StringId id, const Dictionaries& all) { return std::to_underlying(id) < all.strings.size(); }
bool known(PoolId id, const Dictionaries& all) { return std::to_underlying(id) < all.pools.size(); }
bool known(FrameId id, const Dictionaries& all) { return std::to_underlying(id) < all.frames.size(); }
bool known(StackId id, const Dictionaries& all) { return std::to_underlying(id) < all.stacks.size(); }
bool known(const std::vector<FrameId>& ids, const Dictionaries& all) {
  return std::ranges::all_of(ids, [&](FrameId id) { return known(id, all); });
}
template <typename Number>
bool known(const Number&, const Dictionaries&) {
  return true;
}

template <typename Entry>
bool references_known(const Entry& entry, const Dictionaries& all) {
  bool good = true;
  for_each_field<Entry>([&](std::uint64_t, auto member) { good = good && known(entry.*member, all); });
  return good;
}

void mark_lost(std::string& entry) { entry = "(lost)"; }
void mark_lost(Site& entry) { entry.flags = kLostSite; }
template <typename Entry>
void mark_lost(Entry&) {}

// What a block may require.
struct Limits {
  std::uint64_t& may_miss;
  support::MemoryBudget& memory;
};
constexpr std::uint64_t kGrowth = 2;  // a growing vector exists twice

std::unexpected<Error> too_much(const support::MemoryBudget& memory) {
  return fail("they need " + support::more_than(memory.limit()));
}

// Reads the columns of one table into new rows at the end of `entries`.
template <typename Entry, typename Decode>
Status append_rows(ByteReader& in, const TableHead& table, std::vector<Entry>& entries, Limits limits, Decode decode) {
  const std::uint64_t missing = table.first - entries.size();
  if (missing > std::min<std::uint64_t>(limits.may_miss, kMaxMissing))
    return fail("its entries do not continue the previous ones");
  if (!limits.memory.take(missing, kGrowth * sizeof(Entry))) return too_much(limits.memory);
  limits.may_miss -= missing;
  entries.resize(static_cast<std::size_t>(table.first));
  for (auto entry = entries.end() - static_cast<std::ptrdiff_t>(missing); entry != entries.end(); ++entry) mark_lost(*entry);
  if (table.rows > kBatchRows) return fail("a table is longer than the format allows");
  // Entries are distinct, so each has at least one byte somewhere: a few bytes cannot require a lot of memory.
  if (table.rows > in.left() || entries.size() + table.rows > most_entries<Entry>)
    return fail("a table is longer than the format allows");
  if (!limits.memory.take(table.rows, kGrowth * sizeof(Entry))) return too_much(limits.memory);
  std::vector<Entry> rows(static_cast<std::size_t>(table.rows));
  const std::size_t before = in.left();
  for (std::uint64_t i = 0; i < table.columns && !in.failed(); ++i) {
    if (!decode(take_column(in), rows)) return fail("a column is inconsistent");
  }
  if (table.rows > before - in.left()) return fail("a table has more rows than bytes");
  // Texts and lists take at least one byte of the block per element.
  if (!limits.memory.take(before - in.left(), sizeof(FrameId))) return too_much(limits.memory);
  entries.insert(entries.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  return {};
}

Status decode_tables(ByteReader& in, Dictionaries& all, Limits limits) {
  while (in.left() > 0) {
    const TableHead table = take_table(in);
    bool known_table = table.id == kStringDictionary;
    Status status;
    if (known_table) {
      status = append_rows(in, table, all.strings, limits, [](const Column& column, std::vector<std::string>& rows) {
        return column.field != 1 || decode_text(column, rows);
      });
    }
    for_each_dictionary(all, [&]<typename Entry>(std::uint64_t id, std::vector<Entry>& entries) {
      if (id != table.id) return;
      known_table = true;
      const std::size_t before = entries.size();
      status = append_rows(in, table, entries, limits, decode_column_of<Entry>);
      for (std::size_t i = before; status && i < entries.size(); ++i) {
        if (!references_known(entries[i], all)) status = fail("an entry refers to a missing one");
      }
    });
    if (!status) return status;
    for (std::uint64_t i = 0; !known_table && i < table.columns && !in.failed(); ++i) take_column(in);
  }
  return in.failed() ? fail("it ends in the middle of a table") : Status{};
}

}  // namespace

Dictionaries initial_dictionaries() {
  Dictionaries all;
  all.strings.emplace_back();
  all.stacks.emplace_back();
  return all;
}

bool encode_additions(const Dictionaries& all, DictionarySizes& written, Buffer& payload, Additions which) {
  payload.clear();
  add(all.strings, written[kStringDictionary], payload, [&](std::size_t first, std::span<const std::string> rows) {
    Buffer data;
    put_table(payload, {kStringDictionary, first, rows.size(), 1});
    put_column(payload, encode_text(1, rows, data));
  });
  // Strings, then pools, frames and stacks, then what refers to them: a file cut after any block is consistent.
  const auto rest = [&]<typename Entry>(std::uint64_t id, const std::vector<Entry>& entries) {
    add(entries, written[id], payload,
        [&](std::size_t first, std::span<const Entry> rows) { encode_entries(id, first, rows, payload); });
  };
  rest(2, all.pools);
  if (which == Additions::all) {
    rest(4, all.frames);
    rest(5, all.stacks);
    rest(3, all.sites);
  }
  rest(6, all.threads);
  if (which == Additions::all) {
    rest(7, all.op_sources);
    rest(8, all.source_files);
    rest(9, all.source_lines);
  }
  return !payload.empty();
}

Status decode_additions(ByteSpan payload, Dictionaries& all, std::uint64_t& may_miss, support::MemoryBudget& memory) {
  const DictionarySizes before = {0,
                                  all.strings.size(),
                                  all.pools.size(),
                                  all.sites.size(),
                                  all.frames.size(),
                                  all.stacks.size(),
                                  all.threads.size(),
                                  all.op_sources.size(),
                                  all.source_files.size(),
                                  all.source_lines.size()};
  ByteReader in(payload);
  Status status = decode_tables(in, all, {may_miss, memory});
  if (status) return status;
  all.strings.resize(before[kStringDictionary]);
  for_each_dictionary(all, [&](std::uint64_t id, auto& entries) { entries.resize(before[id]); });
  return status;
}

}  // namespace vramscope::trace
