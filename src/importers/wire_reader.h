// Reads protocol buffers without a schema, from untrusted bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "support/bytes.h"

namespace vramscope::importers {

// One field of a message. `value` holds a varint, or the bits of a fixed-size number; `text` a message, a string or packed
// numbers.
struct WireField {
  std::uint32_t number = 0;
  std::uint64_t value = 0;
  std::string_view text = {};
  bool is_text = false;
};

class WireReader {
 public:
  explicit WireReader(std::string_view message) : bytes_(support::bytes_of(message)) {}

  // None at the end, and from the first wrong byte on.
  std::optional<WireField> next() {
    if (bytes_.left() == 0 || bytes_.failed()) return {};
    const std::uint64_t key = bytes_.varint();
    WireField field{.number = static_cast<std::uint32_t>(key >> 3)};
    switch (key & 7) {
      case 0:
        field.value = bytes_.varint();
        break;
      case 1:
        field.value = bytes_.fixed<std::uint64_t>();
        break;
      case 2: {
        const auto content = bytes_.bytes(bytes_.varint());
        field.text = {reinterpret_cast<const char*>(content.data()), content.size()};
        field.is_text = true;
        break;
      }
      case 5:
        field.value = bytes_.fixed<std::uint32_t>();
        break;
      default:
        failed_ = true;
    }
    failed_ = failed_ || bytes_.failed() || field.number == 0 || key >> 3 > kLargestField;
    if (failed_) return {};
    return field;
  }
  bool failed() const { return failed_; }

 private:
  static constexpr std::uint64_t kLargestField = (1u << 29) - 1;

  support::ByteReader bytes_;
  bool failed_ = false;
};

// Calls f(field) for each field. False: the bytes are not a whole message.
template <typename F>
bool each_field(std::string_view message, F&& f) {
  WireReader reader(message);
  while (const auto field = reader.next()) f(*field);
  return !reader.failed();
}

// Calls f(number) for each value of a repeated number, packed or not.
template <typename F>
void each_number(const WireField& field, F&& f) {
  if (!field.is_text) return f(field.value);
  support::ByteReader packed(support::bytes_of(field.text));
  while (packed.left() > 0) {
    const std::uint64_t value = packed.varint();
    if (packed.failed()) return;
    f(value);
  }
}

}  // namespace vramscope::importers
