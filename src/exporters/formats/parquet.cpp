// One table as a Parquet file: zstd pages, dictionaries for texts, minimum and maximum of each column chunk.
#include <algorithm>
#include <bit>
#include <map>

#include "exporters/format.h"
#include "exporters/tables.h"
#include "exporters/thrift.h"
#include "exporters/utf8.h"
#include "support/compress.h"

namespace vramscope::exporters::parquet {

extern const Format kFormat;

namespace {

constexpr std::size_t kRowsPerGroup = 122'880;
constexpr std::string_view kMagic = "PAR1";

// Numbers of the format's enumerations.
enum PhysicalType : std::int32_t { kBoolean = 0, kInt64 = 2, kDouble = 5, kByteArray = 6 };
enum Converted : std::int32_t { kUtf8 = 0, kUint64 = 14, kInt64Signed = 18 };
enum Encoding : std::int32_t { kPlain = 0, kRle = 3, kRleDictionary = 8 };
constexpr std::int32_t kZstd = 6;
enum PageType : std::int32_t { kDataPage = 0, kDictionaryPage = 2 };

PhysicalType physical(Type type) {
  switch (type) {
    case Type::flag:
      return kBoolean;
    case Type::real:
      return kDouble;
    case Type::text:
      return kByteArray;
    case Type::number:
    case Type::integer:
      break;
  }
  return kInt64;
}

// Numbers of `width` bits each, in groups of eight: the bit-packed form of Parquet's hybrid encoding.
std::string bit_packed(const std::vector<std::uint32_t>& values, unsigned width) {
  const std::size_t groups = (values.size() + 7) / 8;
  std::string out;
  append_varint(out, groups << 1 | 1);
  std::uint64_t bits = 0;
  unsigned count = 0;
  for (std::size_t i = 0; i < groups * 8; ++i) {
    bits |= std::uint64_t{i < values.size() ? values[i] : 0} << count;
    for (count += width; count >= 8; count -= 8, bits >>= 8) out.push_back(static_cast<char>(bits));
  }
  return out;
}

// The values of one column in the current row group.
class ColumnChunk {
 public:
  explicit ColumnChunk(const Column& column) : column_(column) {}

  void bits(std::uint64_t value) {
    present_.push_back(1);
    plain_.push_back(value);
    if (column_.type == Type::integer) {
      low_ = std::bit_cast<std::int64_t>(low_) > std::bit_cast<std::int64_t>(value) || plain_.size() == 1 ? value : low_;
      high_ = std::bit_cast<std::int64_t>(high_) < std::bit_cast<std::int64_t>(value) || plain_.size() == 1 ? value : high_;
    } else {
      low_ = value < low_ || plain_.size() == 1 ? value : low_;
      high_ = value > high_ || plain_.size() == 1 ? value : high_;
    }
  }
  void text(std::string_view value) {
    present_.push_back(1);
    const auto found = ids_.find(value);
    if (found != ids_.end()) return indices_.push_back(found->second);
    std::string clean;
    append_utf8(clean, value);
    append_little_endian(dictionary_, static_cast<std::uint32_t>(clean.size()));
    dictionary_ += clean;
    indices_.push_back(static_cast<std::uint32_t>(ids_.size()));
    ids_.emplace(std::string(value), indices_.back());
  }
  void none() { present_.push_back(0); }

  // Writes the pages and returns the chunk's metadata.
  ThriftStruct write(Output& out) {
    const bool is_text = column_.type == Type::text;
    const auto begin = static_cast<std::int64_t>(out.size());
    std::int64_t unpacked = 0;
    if (is_text) {
      const ThriftStruct head = ThriftStruct().i32(1, static_cast<std::int32_t>(ids_.size())).i32(2, kPlain);
      unpacked += page(out, kDictionaryPage, 7, head, dictionary_);
    }
    const auto data_at = static_cast<std::int64_t>(out.size());
    std::string data;
    if (column_.optional) {
      const std::string levels = bit_packed(present_, 1);
      append_little_endian(data, static_cast<std::uint32_t>(levels.size()));
      data += levels;
    }
    data += values();
    const ThriftStruct head = ThriftStruct()
                                  .i32(1, static_cast<std::int32_t>(present_.size()))
                                  .i32(2, is_text ? kRleDictionary : kPlain)
                                  .i32(3, kRle)
                                  .i32(4, kRle);
    unpacked += page(out, kDataPage, 5, head, data);
    ThriftStruct meta;
    meta.i32(1, physical(column_.type));
    is_text ? meta.i32s(2, {kPlain, kRle, kRleDictionary}) : meta.i32s(2, {kPlain, kRle});
    meta.texts(3, {column_.name}).i32(4, kZstd).i64(5, static_cast<std::int64_t>(present_.size())).i64(6, unpacked);
    meta.i64(7, static_cast<std::int64_t>(out.size()) - begin).i64(9, data_at);
    if (is_text) meta.i64(11, begin);
    if (!plain_.empty() && (column_.type == Type::number || column_.type == Type::integer)) meta.structure(12, statistics());
    return ThriftStruct().i64(2, begin).structure(3, meta);
  }

 private:
  std::string values() const {
    std::string out;
    if (column_.type == Type::text) {
      const auto width = static_cast<unsigned>(std::bit_width(ids_.empty() ? 0 : ids_.size() - 1));
      out.push_back(static_cast<char>(width));
      return out + bit_packed(indices_, width);
    }
    if (column_.type == Type::flag) {
      for (std::size_t i = 0; i < plain_.size(); ++i) {
        if (i % 8 == 0) out.push_back('\0');
        out.back() = static_cast<char>(out.back() | static_cast<char>(plain_[i] << i % 8));
      }
      return out;
    }
    out.assign(reinterpret_cast<const char*>(plain_.data()), plain_.size() * sizeof plain_[0]);
    return out;
  }

  ThriftStruct statistics() const {
    const auto text = [](const std::uint64_t& value) {
      return std::string_view(reinterpret_cast<const char*>(&value), sizeof value);
    };
    const auto missing = static_cast<std::int64_t>(present_.size() - plain_.size());
    return ThriftStruct().i64(3, missing).text(5, text(high_)).text(6, text(low_));
  }

  // Returns the size that the page has unpacked, with its head.
  static std::int64_t page(Output& out, PageType type, int field, const ThriftStruct& head, const std::string& data) {
    support::Buffer packed;
    support::compress(support::bytes_of(data), 1, packed);
    const std::string whole = ThriftStruct()
                                  .i32(1, type)
                                  .i32(2, static_cast<std::int32_t>(data.size()))
                                  .i32(3, static_cast<std::int32_t>(packed.size()))
                                  .structure(field, head)
                                  .bytes();
    out.write(whole);
    out.write({reinterpret_cast<const char*>(packed.data()), packed.size()});
    return static_cast<std::int64_t>(whole.size() + data.size());
  }

  const Column& column_;
  std::vector<std::uint32_t> present_, indices_;
  std::vector<std::uint64_t> plain_;
  std::uint64_t low_ = 0, high_ = 0;
  std::string dictionary_;
  std::map<std::string, std::uint32_t, std::less<>> ids_;
};

class ParquetRows final : public RowSink {
 public:
  ParquetRows(const Table& table, Output& out) : table_(table), out_(out) {
    out_.write(kMagic);
    start_group();
  }

  void number(std::uint64_t value) override { next().bits(value); }
  void integer(std::int64_t value) override { next().bits(static_cast<std::uint64_t>(value)); }
  void real(double value) override { next().bits(std::bit_cast<std::uint64_t>(value)); }
  void flag(bool value) override { next().bits(value ? 1 : 0); }
  void text(std::string_view value) override { next().text(value); }
  void none() override { next().none(); }
  bool end_row() override {
    at_ = 0;
    if (++rows_in_group_ == kRowsPerGroup) end_group();
    return out_.good();
  }

  void finish() {
    if (rows_in_group_ > 0) end_group();
    std::string schema = ThriftStruct().text(4, "schema").i32(5, static_cast<std::int32_t>(table_.columns.size())).bytes();
    std::string orders;
    for (const Column& column : table_.columns) {
      ThriftStruct element;
      element.i32(1, physical(column.type)).i32(3, column.optional ? 1 : 0).text(4, column.name);
      if (column.type == Type::text) element.i32(6, kUtf8);
      if (column.type == Type::number) element.i32(6, kUint64);
      if (column.type == Type::integer) element.i32(6, kInt64Signed);
      schema += element.bytes();
      orders += ThriftStruct().structure(1, ThriftStruct()).bytes();  // by its type
    }
    ThriftStruct file;
    file.i32(1, 1).structures(2, table_.columns.size() + 1, schema).i64(3, static_cast<std::int64_t>(rows_));
    file.structures(4, groups_, group_bytes_).text(6, "vramscope " VRAMSCOPE_VERSION);
    const std::string footer = file.structures(7, table_.columns.size(), orders).bytes();
    out_.write(footer);
    std::string length;
    append_little_endian(length, static_cast<std::uint32_t>(footer.size()));
    out_.write(length);
    out_.write(kMagic);
  }

 private:
  ColumnChunk& next() { return chunks_[at_++]; }
  void start_group() {
    chunks_.clear();
    for (const Column& column : table_.columns) chunks_.emplace_back(column);
    rows_in_group_ = 0;
  }
  void end_group() {
    const std::uint64_t begin = out_.size();
    std::string columns;
    for (ColumnChunk& chunk : chunks_) columns += chunk.write(out_).bytes();
    ThriftStruct group;
    group.structures(1, chunks_.size(), columns).i64(2, static_cast<std::int64_t>(out_.size() - begin));
    group_bytes_ += group.i64(3, static_cast<std::int64_t>(rows_in_group_)).bytes();
    ++groups_;
    rows_ += rows_in_group_;
    start_group();
  }

  const Table& table_;
  Output& out_;
  std::vector<ColumnChunk> chunks_;
  std::size_t at_ = 0, rows_in_group_ = 0, groups_ = 0;
  std::uint64_t rows_ = 0;
  std::string group_bytes_;
};

Status write(const Request& request, Output& out) {
  const auto table = table_named(request.table);
  if (!table) return std::unexpected(table.error());
  ParquetRows rows(**table, out);
  if (Status status = (*table)->rows(request, rows); !status) return status;
  rows.finish();
  return {};
}

}  // namespace

const Format kFormat{.name = "parquet",
                     .extension = ".parquet",
                     .opens_in = "DuckDB, ClickHouse, Spark, pandas, polars",
                     .binary = true,
                     .takes = kTakesTable,
                     .write = write};

}  // namespace vramscope::exporters::parquet
