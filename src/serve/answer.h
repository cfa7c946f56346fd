// The form in which an answer travels: "VSA1", u32 length of the JSON, the JSON, then bulk columns that the JSON points into with
// {"$": [offset, count, coding]}. Coding "d" = zigzag varints of the differences of whole numbers, "f" = little-endian doubles.
// JSON alone would be several times larger for columns; a column of a steady run is mostly zeros after differencing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramscope::serve {

class AnswerWriter {
 public:
  void begin_object();
  void end_object();
  void begin_list();
  void end_list();
  void key(std::string_view name);
  void text(std::string_view value);
  void number(std::uint64_t value);
  void number(std::int64_t value);
  void number(double value);  // null where it is no number
  void boolean(bool value);
  void null();
  void column(const std::vector<double>& values);
  std::string finish();

 private:
  void separate();

  std::string json_;
  std::string blob_;
  bool comma_ = false;
};

inline void put(AnswerWriter& out, const std::string& value) { out.text(value); }
inline void put(AnswerWriter& out, std::uint64_t value) { out.number(value); }
inline void put(AnswerWriter& out, std::int64_t value) { out.number(value); }
inline void put(AnswerWriter& out, double value) { out.number(value); }
inline void put(AnswerWriter& out, bool value) { out.boolean(value); }
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
