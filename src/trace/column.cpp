#include "trace/column.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <tsl/robin_map.h>

#include "support/secret_hash.h"

namespace vramscope::trace {

using support::Buffer;
using support::ByteReader;
using support::ByteSpan;
using support::put_varint;
using support::unzigzag;
using support::zigzag;

namespace {

std::size_t varint_bytes(std::uint64_t value) { return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7; }

// Dictionary indices: runs and first appearances cost only a small constant.
constexpr std::uint64_t kSameAgain = 0;
constexpr std::uint64_t kNextNew = 1;
constexpr std::uint64_t kFirstIndex = 2;

bool take_varints(ByteSpan bytes, std::span<std::uint64_t> into) {
  const std::uint8_t* at = bytes.data();
  const std::uint8_t* const end = at + bytes.size();
  std::uint64_t* out = into.data();
  std::uint64_t* const out_end = out + into.size();
  // Most values are below 128: eight of them at a time.
  while (out_end - out >= 8 && end - at >= 16) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    if ((word & 0x8080808080808080u) == 0) {
      for (unsigned i = 0; i < 8; ++i) out[i] = (word >> (8 * i)) & 0xff;
      at += 8;
      out += 8;
      continue;
    }
    for (std::uint64_t* const stop = out + 4; out != stop && end - at >= 10;) {
      std::uint64_t value = *at++;
      if (value >= 0x80) {
        value &= 0x7f;
        unsigned shift = 7;
        std::uint8_t byte;
        do {
          byte = *at++;
          value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
          shift += 7;
        } while (byte >= 0x80 && shift < 70);
        if (byte >= 0x80) return false;
      }
      *out++ = value;
    }
  }
  ByteReader rest({at, end});
  while (out != out_end) *out++ = rest.varint();
  return !rest.failed() && rest.left() == 0;
}

}  // namespace

void put_table(Buffer& out, const TableHead& head) {
  put_varint(out, head.id);
  put_varint(out, head.first);
  put_varint(out, head.rows);
  put_varint(out, head.columns);
}

TableHead take_table(ByteReader& in) {
  TableHead head;
  head.id = in.varint();
  head.first = in.varint();
  head.rows = in.varint();
  head.columns = in.varint();
  return head;
}

void put_column(Buffer& out, const Column& column) {
  put_varint(out, column.field);
  put_varint(out, std::to_underlying(column.transform) | std::uint64_t{column.shift} << 4);
  put_varint(out, column.data.size());
  support::put_bytes(out, column.data);
}

Column take_column(ByteReader& in) {
  Column column;
  column.field = in.varint();
  const std::uint64_t coding = in.varint();
  column.transform = static_cast<Transform>(coding & 15);
  column.shift = static_cast<unsigned>((coding >> 4) & 63);
  column.data = in.bytes(in.varint());
  return column;
}

void put_array(Buffer& out, std::span<const std::uint64_t> values, Constants constants) {
  const std::uint64_t first = values.empty() ? 0 : values.front();
  std::uint64_t all = 0;
  std::uint64_t changed = 0;
  std::size_t bytes = 0;
  for (const std::uint64_t value : values) {
    all |= value;
    changed |= value ^ first;
    bytes += varint_bytes(value);
  }
  if (changed == 0 && constants == kConstant) {
    out.push_back(std::to_underlying(Packing::constant));
    put_varint(out, first);
  } else if (all < 256) {
    out.push_back(std::to_underlying(Packing::byte));
    for (const std::uint64_t value : values) out.push_back(static_cast<std::uint8_t>(value));
  } else if (bytes >= values.size() * sizeof(std::uint64_t)) {
    out.push_back(std::to_underlying(Packing::fixed));
    for (const std::uint64_t value : values) support::put_fixed(out, value);
  } else {
    out.push_back(std::to_underlying(Packing::varint));
    out.reserve(out.size() + bytes);
    for (const std::uint64_t value : values) put_varint(out, value);
  }
}

bool take_array(ByteSpan bytes, std::span<std::uint64_t> into) {
  if (bytes.empty()) return false;
  const ByteSpan data = bytes.subspan(1);
  switch (static_cast<Packing>(bytes.front())) {
    case Packing::constant: {
      ByteReader reader(data);
      std::fill(into.begin(), into.end(), reader.varint());
      return !reader.failed() && reader.left() == 0;
    }
    case Packing::byte:
      if (data.size() != into.size()) return false;
      std::copy(data.begin(), data.end(), into.begin());
      return true;
    case Packing::fixed:
      if (data.size() != into.size_bytes()) return false;
      if (!data.empty()) std::memcpy(into.data(), data.data(), data.size());
      return true;
    case Packing::varint:
      return take_varints(data, into);
  }
  return false;
}

void put_sized_array(Buffer& out, std::span<const std::uint64_t> values) {
  Buffer array;
  put_array(array, values);
  put_varint(out, array.size());
  support::put_bytes(out, array);
}

bool take_sized_array(ByteReader& in, std::span<std::uint64_t> into) { return take_array(in.bytes(in.varint()), into); }

Column encode_plain(std::uint64_t field, std::span<const std::uint64_t> values, Buffer& data, Constants constants) {
  data.clear();
  put_array(data, values, constants);
  return {field, Transform::plain, 0, data};
}

Column encode_delta(std::uint64_t field, std::span<const std::uint64_t> values, Buffer& data) {
  data.clear();
  std::vector<std::int64_t> differences(values.size());
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    differences[i] = static_cast<std::int64_t>(values[i] - std::exchange(last, values[i]));
  const unsigned shift = common_shift(differences);
  Values coded(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) coded[i] = zigzag(differences[i] >> shift);
  put_array(data, coded);
  return {field, Transform::delta, shift, data};
}

Column encode_dict(std::uint64_t field, std::span<const std::uint64_t> values, Buffer& data) {
  data.clear();
  tsl::robin_map<std::uint64_t, std::uint64_t, support::SecretHash> index;
  Values distinct;
  Values coded;
  coded.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && values[i] == values[i - 1]) {
      coded.push_back(kSameAgain);
      continue;
    }
    const auto [found, inserted] = index.try_emplace(values[i], distinct.size());
    coded.push_back(inserted ? kNextNew : found->second + kFirstIndex);
    if (inserted) distinct.push_back(values[i]);
  }
  put_varint(data, distinct.size());
  std::uint64_t before = 0;
  for (std::uint64_t& value : distinct) value = zigzag(static_cast<std::int64_t>(value - std::exchange(before, value)));
  put_sized_array(data, distinct);
  put_array(data, coded);
  return {field, Transform::dict, 0, data};
}

Column encode_number(std::uint64_t field, std::span<const std::uint64_t> values, Buffer& data) {
  Buffer plain;
  encode_plain(field, values, plain);
  const Column delta = encode_delta(field, values, data);
  if (delta.data.size() < plain.size()) return delta;
  data.swap(plain);
  return {field, Transform::plain, 0, data};
}

bool decode_dict(const Column& column, Values& distinct, std::span<std::uint64_t> index) {
  ByteReader reader(column.data);
  const std::uint64_t count = reader.varint();
  if (column.transform != Transform::dict || count > index.size()) return false;
  distinct.resize(static_cast<std::size_t>(count));
  if (!take_sized_array(reader, distinct) || !take_array(reader.bytes(reader.left()), index)) return false;
  std::uint64_t before = 0;
  for (std::uint64_t& value : distinct) value = before += static_cast<std::uint64_t>(unzigzag(value));
  std::uint64_t last = 0;
  std::uint64_t seen = 0;
  bool good = index.empty() || index.front() == kNextNew;
  for (std::uint64_t& value : index) {
    if (value == kNextNew) {
      last = seen++;
    } else if (value != kSameAgain) {
      last = value - kFirstIndex;
      good &= last < seen;
    }
    value = last;
  }
  return good && seen == count;
}

bool decode_column(const Column& column, std::span<std::uint64_t> into) {
  switch (column.transform) {
    case Transform::plain:
    case Transform::only_unmatched:
      return take_array(column.data, into);
    case Transform::delta: {
      if (!take_array(column.data, into)) return false;
      std::uint64_t last = 0;
      for (std::uint64_t& value : into) value = last += static_cast<std::uint64_t>(unzigzag(value)) << column.shift;
      return true;
    }
    case Transform::dict: {
      Values distinct;
      if (!decode_dict(column, distinct, into)) return false;
      for (std::uint64_t& value : into) value = distinct[static_cast<std::size_t>(value)];
      return true;
    }
    default:
      return false;
  }
}

unsigned common_shift(std::span<const std::int64_t> differences) {
  std::uint64_t bits = 0;
  for (const std::int64_t difference : differences) bits |= static_cast<std::uint64_t>(difference);
  return bits == 0 ? 0 : static_cast<unsigned>(std::countr_zero(bits));
}

}  // namespace vramscope::trace
