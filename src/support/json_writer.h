// Writes JSON. Objects keep the order of the calls; this class adds commas, indentation and escapes.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace vramscope::support {

// One value at the top. Inside an object every value follows a key(). Indents when `pretty`.
class JsonWriter {
 public:
  explicit JsonWriter(bool pretty = true) : pretty_(pretty) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);  // bytes that are not valid UTF-8 become U+FFFD
  JsonWriter& value(const char* text) { return value(std::string_view{text}); }
  JsonWriter& value(const std::string& text) { return value(std::string_view{text}); }
  JsonWriter& value(bool truth) { return raw(truth ? "true" : "false"); }
  JsonWriter& value(double number);  // not finite: null
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  JsonWriter& value(Number number) {
    return raw(std::to_string(number));
  }
  JsonWriter& null() { return raw("null"); }
  // What another writer has written: its lines are indented to their place here.
  JsonWriter& document(std::string_view json);

  template <typename T>
  JsonWriter& member(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  const std::string& text() const { return text_; }
  // For the next value; the memory is kept.
  void clear() {
    text_.clear();
    first_ = true;
  }

 private:
  JsonWriter& raw(std::string_view json);  // already JSON
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void line();

  std::string text_;
  std::size_t depth_ = 0;
  bool pretty_;
  bool first_ = true;  // nothing yet in the current object or array
  bool after_key_ = false;
};

}  // namespace vramscope::support
