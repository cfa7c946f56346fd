// Writes protocol buffers without a schema: fields by number. Enough for Perfetto, pprof, TensorBoard and XPlane.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "exporters/utf8.h"

namespace vramscope::exporters {

inline void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

template <typename T>
void append_little_endian(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// One message. Fields are written in the order of the calls; a message inside it is passed when it is complete.
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value) {
    key(field, 0);
    append_varint(bytes_, value);
    return *this;
  }
  // int32 and int64; a negative value takes ten bytes, as the format wants.
  Message& integer(std::uint32_t field, std::int64_t value) { return number(field, static_cast<std::uint64_t>(value)); }
  Message& text(std::uint32_t field, std::string_view value) {
    return is_ascii(value) ? content(field, value) : content(field, as_utf8(value));
  }
  // Any bytes, as they are.
  Message& content(std::uint32_t field, std::string_view value) {
    key(field, 2);
    append_varint(bytes_, value.size());
    bytes_.append(value);
    return *this;
  }
  Message& message(std::uint32_t field, const Message& value) { return content(field, value.bytes_); }
  Message& fixed64(std::uint32_t field, std::uint64_t value) {
    key(field, 1);
    append_little_endian(bytes_, value);
    return *this;
  }
  Message& real(std::uint32_t field, double value) { return fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  Message& real32(std::uint32_t field, float value) {
    key(field, 5);
    append_little_endian(bytes_, value);
    return *this;
  }
  template <typename Values>
  Message& packed(std::uint32_t field, const Values& values) {
    std::string numbers;
    for (const auto value : values) append_varint(numbers, static_cast<std::uint64_t>(value));
    return content(field, numbers);
  }

  // The fields of another message, at this level.
  Message& fields(const Message& other) {
    bytes_ += other.bytes_;
    return *this;
  }

  const std::string& bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }
  void clear() { bytes_.clear(); }

 private:
  void key(std::uint32_t field, unsigned type) { append_varint(bytes_, std::uint64_t{field} << 3 | type); }

  std::string bytes_;
};

}  // namespace vramscope::exporters
