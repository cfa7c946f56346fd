// One table as an Arrow IPC file (Feather version 2). The buffers are not compressed, so that readers can map the file into
// memory.
#include <algorithm>
#include <bit>
#include <vector>

#include "exporters/flatbuffer.h"
#include "exporters/format.h"
#include "exporters/tables.h"
#include "exporters/utf8.h"
#include "exporters/wire.h"

namespace vramscope::exporters::arrow {

extern const Format kFormat;

namespace {

constexpr std::string_view kMagic = "ARROW1";
constexpr std::size_t kRowsPerBatch = 65'536;
// Offsets of texts have 32 bits: a batch ends long before they would not suffice.
constexpr std::size_t kTextPerBatch = 256 << 20;
constexpr std::uint32_t kContinuation = 0xffff'ffff;

// Numbers of the format's enumerations.
constexpr std::uint16_t kVersion5 = 4;
enum Header : std::uint8_t { kSchema = 1, kRecordBatch = 3 };
enum TypeId : std::uint8_t { kInt = 2, kFloatingPoint = 3, kUtf8 = 5, kBool = 6 };
constexpr std::uint16_t kDouble = 2;

std::uint64_t padded(std::uint64_t size) { return (size + 7) / 8 * 8; }

TypeId type_id(Type type) {
  switch (type) {
    case Type::real:
      return kFloatingPoint;
    case Type::flag:
      return kBool;
    case Type::text:
      return kUtf8;
    case Type::number:
    case Type::integer:
      break;
  }
  return kInt;
}

FlatBuffer::Place type_table(FlatBuffer& out, Type type) {
  const TypeId id = type_id(type);
  if (id == kInt) return out.table({FlatBuffer::i32(0, 64), FlatBuffer::byte(1, type == Type::integer ? 1 : 0)});
  if (id == kFloatingPoint) return out.table({FlatBuffer::i16(0, kDouble)});
  return out.table({});
}

FlatBuffer::Place schema_table(FlatBuffer& out, std::span<const Column> columns) {
  std::vector<FlatBuffer::Place> fields;
  for (const Column& column : columns) {
    const auto children = out.references({});
    const auto type = type_table(out, column.type);
    const auto name = out.text(column.name);
    fields.push_back(
        out.table({FlatBuffer::to(0, name), FlatBuffer::byte(1, column.optional ? 1 : 0),
                   FlatBuffer::byte(2, type_id(column.type)), FlatBuffer::to(3, type), FlatBuffer::to(5, children)}));
  }
  const auto all = out.references(fields);
  return out.table({FlatBuffer::i16(0, 0), FlatBuffer::to(1, all)});
}

// The values of one column in the current batch, in the layout of the file.
class ColumnBuffers {
 public:
  explicit ColumnBuffers(const Column& column) : column_(column) {}

  void bits(std::uint64_t value) {
    if (column_.type == Type::flag)
      append_bit(values_, rows_, value != 0);
    else
      append_little_endian(values_, value);
    end_value(true);
  }
  void text(std::string_view value) {
    append_utf8(texts_, value);
    end_value(true);
  }
  void none() {
    if (column_.type == Type::flag)
      append_bit(values_, rows_, false);
    else if (column_.type != Type::text)
      append_little_endian(values_, std::uint64_t{0});
    end_value(false);
  }

  std::size_t text_size() const { return texts_.size(); }

  // Adds the node and the buffers of this column to the description of the batch, and the bytes to its body.
  void describe(std::vector<std::uint64_t>& nodes, std::vector<std::uint64_t>& buffers, std::string& body) const {
    nodes.insert(nodes.end(), {rows_, missing_});
    add(buffers, body, missing_ == 0 ? std::string_view() : std::string_view(valid_));
    if (column_.type == Type::text) {
      add(buffers, body, offsets_);
      add(buffers, body, texts_);
    } else {
      add(buffers, body, values_);
    }
  }

 private:
  static void append_bit(std::string& out, std::size_t at, bool value) {
    if (at % 8 == 0) out.push_back('\0');
    out.back() = static_cast<char>(static_cast<unsigned char>(out.back()) | (value ? 1U << at % 8 : 0U));
  }
  static void add(std::vector<std::uint64_t>& buffers, std::string& body, std::string_view bytes) {
    buffers.insert(buffers.end(), {body.size(), bytes.size()});
    body += bytes;
    body.resize(padded(body.size()));
  }
  void end_value(bool present) {
    append_bit(valid_, rows_++, present);
    missing_ += present ? 0 : 1;
    if (column_.type == Type::text) append_little_endian(offsets_, static_cast<std::uint32_t>(texts_.size()));
  }

  const Column& column_;
  std::uint64_t rows_ = 0, missing_ = 0;
  std::string valid_, values_, texts_;
  std::string offsets_ = std::string(sizeof(std::uint32_t), '\0');
};

class ArrowRows final : public RowSink {
 public:
  ArrowRows(const Table& table, Output& out) : table_(table), out_(out) {
    out_.write(kMagic);
    out_.write(std::string_view("\0\0", 2));
    FlatBuffer schema;
    const auto root = schema_table(schema, table_.columns);
    write_message(schema, kSchema, root, 0);
    start_batch();
  }

  void number(std::uint64_t value) override { next().bits(value); }
  void integer(std::int64_t value) override { next().bits(static_cast<std::uint64_t>(value)); }
  void real(double value) override { next().bits(std::bit_cast<std::uint64_t>(value)); }
  void flag(bool value) override { next().bits(value ? 1 : 0); }
  void text(std::string_view value) override { next().text(value); }
  void none() override { next().none(); }
  bool end_row() override {
    at_ = 0;
    ++rows_;
    const auto full = [](const ColumnBuffers& column) { return column.text_size() >= kTextPerBatch; };
    if (rows_ == kRowsPerBatch || std::ranges::any_of(columns_, full)) end_batch();
    return out_.good();
  }

  void finish() {
    if (rows_ > 0) end_batch();
    std::string end;
    append_little_endian(end, kContinuation);
    append_little_endian(end, std::uint32_t{0});
    FlatBuffer footer;
    const auto batches = footer.words(batches_, 3);
    const auto dictionaries = footer.words({}, 3);
    const auto schema = schema_table(footer, table_.columns);
    const std::string bytes = footer.finish(footer.table(
        {FlatBuffer::i16(0, kVersion5), FlatBuffer::to(1, schema), FlatBuffer::to(2, dictionaries), FlatBuffer::to(3, batches)}));
    end += bytes;
    append_little_endian(end, static_cast<std::uint32_t>(bytes.size()));
    out_.write(end);
    out_.write(kMagic);
  }

 private:
  ColumnBuffers& next() { return columns_[at_++]; }

  void start_batch() {
    columns_.clear();
    for (const Column& column : table_.columns) columns_.emplace_back(column);
    rows_ = 0;
  }

  void end_batch() {
    std::vector<std::uint64_t> nodes, buffers;
    std::string body;
    for (const ColumnBuffers& column : columns_) column.describe(nodes, buffers, body);
    FlatBuffer batch;
    const auto buffers_at = batch.words(buffers, 2);
    const auto nodes_at = batch.words(nodes, 2);
    const auto root = batch.table({FlatBuffer::i64(0, rows_), FlatBuffer::to(1, nodes_at), FlatBuffer::to(2, buffers_at)});
    const std::uint64_t begin = out_.size();
    const std::uint32_t head = write_message(batch, kRecordBatch, root, body.size());
    out_.write(body);
    batches_.insert(batches_.end(), {begin, head, body.size()});  // the second is a 32-bit number and its padding
    start_batch();
  }

  // Returns the size of what stands before the message's body.
  std::uint32_t write_message(FlatBuffer& content, Header kind, FlatBuffer::Place header, std::uint64_t body_size) {
    const auto root = content.table(
        {FlatBuffer::i16(0, kVersion5), FlatBuffer::byte(1, kind), FlatBuffer::to(2, header), FlatBuffer::i64(3, body_size)});
    const std::string bytes = content.finish(root);
    std::string head;
    append_little_endian(head, kContinuation);
    append_little_endian(head, static_cast<std::uint32_t>(bytes.size()));
    out_.write(head + bytes);
    return static_cast<std::uint32_t>(head.size() + bytes.size());
  }

  const Table& table_;
  Output& out_;
  std::vector<ColumnBuffers> columns_;
  std::size_t at_ = 0;
  std::uint64_t rows_ = 0;
  std::vector<std::uint64_t> batches_;  // begin, size of the head, size of the body
};

Status write(const Request& request, Output& out) {
  const auto table = table_named(request.table);
  if (!table) return std::unexpected(table.error());
  ArrowRows rows(**table, out);
  if (Status status = (*table)->rows(request, rows); !status) return status;
  rows.finish();
  return {};
}

}  // namespace

const Format kFormat{.name = "arrow",
                     .extension = ".arrow",
                     .opens_in = "pyarrow, polars, pandas, DuckDB, R",
                     .binary = true,
                     .takes = kTakesTable,
                     .write = write};

}  // namespace vramscope::exporters::arrow
