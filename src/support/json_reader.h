// Reads untrusted JSON: depth and number of values are limited, nothing recurses on the input, and errors are returned as values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/result.h"

namespace vramscope::support {

// A value and everything in it. An accessor returns nothing for a value of another type, so callers need no check before it.
class JsonValue {
 public:
  struct Member;
  using Array = std::vector<JsonValue>;
  using Object = std::vector<Member>;  // in the order of the text
  // An integer is an int64, or a uint64 if it is too large for that. Any other number is a double.
  using Content = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object>;

  JsonValue();  // null
  explicit JsonValue(Content content);

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(content_); }
  std::optional<bool> truth() const;
  std::optional<std::uint64_t> count() const;  // a non-negative integer
  std::optional<double> number() const;
  std::optional<std::string_view> text() const;
  // The member with this name; the last one if there are several, as in JavaScript and Python. Null: none, or not an object.
  const JsonValue* member(std::string_view name) const;
  const Array* array() const { return std::get_if<Array>(&content_); }
  const Object* object() const { return std::get_if<Object>(&content_); }

  Content& content() { return content_; }

 private:
  Content content_;
};

struct JsonValue::Member {
  std::string name;
  JsonValue value;
};

inline JsonValue::JsonValue() = default;  // NOLINT(readability-redundant-inline-specifier): it is needed outside of the class
inline JsonValue::JsonValue(Content content) : content_(std::move(content)) {}

struct JsonLimits {
  std::size_t depth = 64;          // nesting of objects and arrays
  std::size_t values = 1'000'000;  // in total; each takes about 100 bytes of memory in addition to its text
};

// Parses one value in UTF-8, with only white space around it.
Result<JsonValue> read_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace vramscope::support
