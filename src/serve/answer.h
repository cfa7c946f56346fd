// The form in which an answer travels: "VSA1", u32 length of the JSON, the JSON, then bulk columns that the JSON points into with
// {"$": [offset, count, coding]}. Coding "d" = zigzag varints of the differences of whole numbers, "f" = little-endian doubles.
// JSON alone would be several times larger for columns; a column of a steady run is mostly zeros after differencing.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/json_writer.h"

namespace vramscope::serve {

class AnswerWriter {
 public:
  void begin_object() { json_.begin_object(); }
  void end_object() { json_.end_object(); }
  void begin_list() { json_.begin_array(); }
  void end_list() { json_.end_array(); }
  void key(std::string_view name) { json_.key(name); }
  void text(std::string_view value) { json_.value(value); }
  void number(std::uint64_t value) { json_.value(value); }
  void number(std::int64_t value) { json_.value(value); }
  void number(double value) { json_.value(value); }  // null if it is not finite
  void boolean(bool value) { json_.value(value); }
  void null() { json_.null(); }
  void column(const std::vector<double>& values);
  std::string finish();

 private:
  support::JsonWriter json_{false};
  std::string blob_;
};

inline void put(AnswerWriter& out, const std::string& value) { out.text(value); }
inline void put(AnswerWriter& out, double value) { out.number(value); }
inline void put(AnswerWriter& out, bool value) { out.boolean(value); }
template <std::integral T>
void put(AnswerWriter& out, T value) {
  if constexpr (std::is_signed_v<T>)
    out.number(static_cast<std::int64_t>(value));
  else
    out.number(static_cast<std::uint64_t>(value));
}
inline void put_unless_never(AnswerWriter& out, std::uint64_t value) {
  if (value == ~std::uint64_t{0})
    out.null();
  else
    out.number(value);
}
inline void put_column(AnswerWriter& out, const std::vector<double>& values) { out.column(values); }

template <typename T, typename Put>
void put_list(AnswerWriter& out, const std::vector<T>& values, Put put_one) {
  out.begin_list();
  for (const T& value : values) put_one(out, value);
  out.end_list();
}

template <typename T, typename Put>
void put_optional(AnswerWriter& out, const std::optional<T>& value, Put put_one) {
  if (value)
    put_one(out, *value);
  else
    out.null();
}

}  // namespace vramscope::serve
