#include "support/json_writer.h"

#include <fmt/format.h>

#include <cmath>

#include "support/json_text.h"

namespace vramscope::support {

void JsonWriter::line() {
  if (!pretty_) return;
  text_ += '\n';
  text_.append(2 * depth_, ' ');
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) text_ += ',';
  if (depth_ > 0) line();
  first_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  ++depth_;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  --depth_;
  if (!first_) line();
  text_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(text_, name);
  text_ += pretty_ ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(text_, text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) { return std::isfinite(number) ? raw(fmt::format("{}", number)) : null(); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

JsonWriter& JsonWriter::document(std::string_view json) {
  separate();
  for (const char c : json) {
    // Never inside a string, where a line break is escaped.
    if (c == '\n')
      line();
    else
      text_ += c;
  }
  return *this;
}

}  // namespace vramscope::support
