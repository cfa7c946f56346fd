// Writes FlatBuffers, as much of the format as Arrow's metadata needs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace vramscope::exporters {

// References point forward only, so a buffer is built from its end: an object is complete before anything names it. The bytes are
// kept in reverse order, and a place in the buffer is its distance from the end.
class FlatBuffer {
 public:
  using Place = std::uint32_t;

  // A field of a table, by its number in the schema: a scalar of `size` bytes, or a reference.
  struct Field {
    std::uint16_t id;
    std::uint8_t size;
    std::uint64_t value;
    bool reference = false;
  };
  static Field byte(std::uint16_t id, std::uint8_t value) { return {id, 1, value}; }
  static Field i16(std::uint16_t id, std::uint16_t value) { return {id, 2, value}; }
  static Field i32(std::uint16_t id, std::uint32_t value) { return {id, 4, value}; }
  static Field i64(std::uint16_t id, std::uint64_t value) { return {id, 8, value}; }
  static Field to(std::uint16_t id, Place target) { return {id, 4, target, true}; }

  Place text(std::string_view value) {
    align(value.size() + 1, 4);
    bytes_.push_back('\0');
    bytes_.append(value.rbegin(), value.rend());
    return put(value.size(), 4);
  }

  Place references(std::span<const Place> targets) {
    align(0, 4);
    for (std::size_t i = targets.size(); i-- > 0;) refer(targets[i]);
    return put(targets.size(), 4);
  }

  // A vector of structs that consist of 64-bit words.
  Place words(std::span<const std::uint64_t> values, std::size_t words_per_struct) {
    align(0, 8);
    for (std::size_t i = values.size(); i-- > 0;) put(values[i], 8);
    return put(values.size() / words_per_struct, 4);
  }

  Place table(std::initializer_list<Field> fields) {
    std::uint16_t slots = 0;
    for (const Field& field : fields) slots = std::max<std::uint16_t>(slots, field.id + 1);
    const Place end = place();
    std::array<Place, kMostFields> at{};
    for (const Field& field : fields)
      at[field.id] = field.reference ? refer(static_cast<Place>(field.value)) : put(field.value, field.size);
    const std::size_t vtable_size = 4 + 2 * std::size_t{slots};
    const Place start = put(vtable_size, 4);  // the vtable lies directly before the table
    for (std::size_t id = slots; id-- > 0;) put(at[id] == 0 ? 0 : start - at[id], 2);
    put(start - end, 2);
    put(vtable_size, 2);
    return start;
  }

  // The buffer; its size is a multiple of 8.
  std::string finish(Place root) {
    align(4, 8);
    refer(root);
    std::ranges::reverse(bytes_);
    return std::move(bytes_);
  }

 private:
  static constexpr std::size_t kMostFields = 8;

  Place place() const { return static_cast<Place>(bytes_.size()); }
  // So that `following` bytes end at a multiple of `alignment`.
  void align(std::size_t following, std::size_t alignment) {
    while ((bytes_.size() + following) % alignment != 0) bytes_.push_back('\0');
  }
  Place put(std::uint64_t value, unsigned size) {
    align(0, size);
    for (unsigned i = size; i-- > 0;) bytes_.push_back(static_cast<char>(value >> 8 * i));
    return place();
  }
  Place refer(Place target) {
    align(0, 4);
    return put(place() + 4 - target, 4);
  }

  std::string bytes_;
};

}  // namespace vramscope::exporters
