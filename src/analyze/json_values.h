// Values of answers as JSON: numbers and texts as they are, lists as arrays, unknown values as null.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/basics.h"
#include "support/json_writer.h"

namespace vramscope::analyze {

template <typename T>
void put(support::JsonWriter& json, const T& value) {
  if constexpr (requires { write(json, value); })
    write(json, value);
  else
    json.value(value);
}
template <typename T>
void put(support::JsonWriter& json, const std::optional<T>& value);
template <typename T>
void put(support::JsonWriter& json, const std::vector<T>& values);

template <typename A, typename B>
void put(support::JsonWriter& json, const std::pair<A, B>& value) {
  json.begin_object().key("name");
  put(json, value.first);
  json.key("value");
  put(json, value.second);
  json.end_object();
}
template <typename T>
void put(support::JsonWriter& json, const std::optional<T>& value) {
  if (value)
    put(json, *value);
  else
    json.null();
}
template <typename T>
void put(support::JsonWriter& json, const std::vector<T>& values) {
  json.begin_array();
  for (const T& value : values) put(json, value);
  json.end_array();
}

class Object {
 public:
  explicit Object(support::JsonWriter& json) : json_(json) { json_.begin_object(); }
  ~Object() { json_.end_object(); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  template <typename T>
  void member(std::string_view name, const T& value) {
    json_.key(name);
    put(json_, value);
  }
  // Pairs as an object of its own.
  template <typename T>
  void named(std::string_view name, const std::vector<std::pair<std::string, T>>& pairs) {
    json_.key(name).begin_object();
    for (const auto& [key, value] : pairs) {
      json_.key(key);
      put(json_, value);
    }
    json_.end_object();
  }
  void member(std::string_view name, Moment value) {  // JavaScript has no number for kNever
    json_.key(name);
    if (value == kNever)
      json_.null();
    else
      json_.value(value);
  }

 private:
  support::JsonWriter& json_;
};

// An array of numbers, for structs that come by the thousand.
class Row {
 public:
  explicit Row(support::JsonWriter& json) : json_(json) { json_.begin_array(); }
  ~Row() { json_.end_array(); }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;
  void value(std::uint64_t number) { json_.value(number); }

 private:
  support::JsonWriter& json_;
};

}  // namespace vramscope::analyze
