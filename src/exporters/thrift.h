// Writes Thrift's compact protocol, as much of it as Parquet's metadata needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "exporters/wire.h"

namespace vramscope::exporters {

// One struct. Fields are written in ascending order of their ids.
class ThriftStruct {
 public:
  ThriftStruct& i32(int field, std::int32_t value) { return integer(field, kI32, value); }
  ThriftStruct& i64(int field, std::int64_t value) { return integer(field, kI64, value); }
  ThriftStruct& text(int field, std::string_view value) {
    head(field, kBinary);
    append_text(value);
    return *this;
  }
  ThriftStruct& structure(int field, const ThriftStruct& value) {
    head(field, kStruct);
    bytes_ += value.bytes();
    return *this;
  }
  // A list of structs, whose bytes are passed one after another.
  ThriftStruct& structures(int field, std::size_t count, std::string_view bytes) {
    head(field, kList);
    list(kStruct, count);
    bytes_ += bytes;
    return *this;
  }
  ThriftStruct& i32s(int field, std::initializer_list<std::int32_t> values) {
    head(field, kList);
    list(kI32, values.size());
    for (const std::int32_t value : values) append_varint(bytes_, zigzag(value));
    return *this;
  }
  ThriftStruct& texts(int field, std::initializer_list<std::string_view> values) {
    head(field, kList);
    list(kBinary, values.size());
    for (const std::string_view value : values) append_text(value);
    return *this;
  }

  std::string bytes() const { return bytes_ + '\0'; }

 private:
  enum Type : std::uint8_t { kI32 = 5, kI64 = 6, kBinary = 8, kList = 9, kStruct = 12 };

  static std::uint64_t zigzag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  }
  void head(int field, Type type) {
    // Ids of Parquet's structs never differ by more than 15 from field to field.
    bytes_.push_back(static_cast<char>((field - last_) << 4 | type));
    last_ = field;
  }
  void list(Type type, std::size_t count) {
    if (count < 15) {
      bytes_.push_back(static_cast<char>(count << 4 | type));
    } else {
      bytes_.push_back(static_cast<char>(0xf0 | type));
      append_varint(bytes_, count);
    }
  }
  ThriftStruct& integer(int field, Type type, std::int64_t value) {
    head(field, type);
    append_varint(bytes_, zigzag(value));
    return *this;
  }
  void append_text(std::string_view value) {
    append_varint(bytes_, value.size());
    bytes_ += value;
  }

  std::string bytes_;
  int last_ = 0;
};

}  // namespace vramscope::exporters
