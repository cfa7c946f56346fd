// Values of answers as JSON: numbers and texts as they are, lists as arrays, what is not known as null.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/json.h"

namespace vramscope::analyze {

template <typename T>
void put(support::JsonWriter& json, const T& value) {
  if constexpr (requires { write(json, value); })
    write(json, value);
  else
    json.value(value);
}
inline void put(support::JsonWriter& json, const MapBlock& b) {  // many: as a row
  json.begin_array();
  for (std::uint64_t v : {b.id, b.address, b.granted, b.requested, std::uint64_t{b.region}, std::uint64_t{b.category},
                          std::uint64_t{b.faded}, b.birth_us, std::uint64_t{b.label}})
    json.value(v);
  json.end_array();
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
  void member(std::string_view name, Moment value) {  // kNever and "all ones" are no numbers for JavaScript
    json_.key(name);
    if (value == kNever)
      json_.null();
    else
      json_.value(value);
  }

 private:
  support::JsonWriter& json_;
};

}  // namespace vramscope::analyze
