#include "serve/answer.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "support/json_text.h"

namespace vramscope::serve {

namespace {

constexpr double kLargestWhole = 9007199254740992.0;  // 2^53: JavaScript's numbers are doubles

void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>((value >> shift) & 0xff));
}

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

bool all_whole(const std::vector<double>& values) {
  for (const double value : values)
    if (!(std::abs(value) < kLargestWhole / 4) || value != std::floor(value)) return false;
  return true;
}

}  // namespace

void AnswerWriter::separate() {
  if (comma_) json_.push_back(',');
  comma_ = true;
}

void AnswerWriter::begin_object() {
  separate();
  json_.push_back('{');
  comma_ = false;
}

void AnswerWriter::end_object() {
  json_.push_back('}');
  comma_ = true;
}

void AnswerWriter::begin_list() {
  separate();
  json_.push_back('[');
  comma_ = false;
}

void AnswerWriter::end_list() {
  json_.push_back(']');
  comma_ = true;
}

void AnswerWriter::key(std::string_view name) {
  separate();
  support::append_json_string(json_, name);
  json_.push_back(':');
  comma_ = false;
}

void AnswerWriter::text(std::string_view value) {
  separate();
  support::append_json_string(json_, value);
}

void AnswerWriter::number(std::uint64_t value) {
  separate();
  fmt::format_to(std::back_inserter(json_), "{}", value);
}

void AnswerWriter::number(std::int64_t value) {
  separate();
  fmt::format_to(std::back_inserter(json_), "{}", value);
}

void AnswerWriter::number(double value) {
  separate();
  if (!std::isfinite(value))
    json_ += "null";
  else if (value == std::floor(value) && std::abs(value) < kLargestWhole)
    fmt::format_to(std::back_inserter(json_), "{}", static_cast<std::int64_t>(value));
  else
    fmt::format_to(std::back_inserter(json_), "{}", value);
}

void AnswerWriter::boolean(bool value) {
  separate();
  json_ += value ? "true" : "false";
}

void AnswerWriter::null() {
  separate();
  json_ += "null";
}

void AnswerWriter::column(const std::vector<double>& values) {
  separate();
  const bool whole = all_whole(values);
  fmt::format_to(std::back_inserter(json_), R"({{"$":[{},{},"{}"]}})", blob_.size(), values.size(), whole ? 'd' : 'f');
  std::int64_t last = 0;
  for (const double value : values) {
    if (!whole) {
      const auto bits = std::bit_cast<std::uint64_t>(value);
      for (int shift = 0; shift < 64; shift += 8) blob_.push_back(static_cast<char>((bits >> shift) & 0xff));
      continue;
    }
    const auto now = static_cast<std::int64_t>(value);
    const std::int64_t step = now - last;
    put_varint(blob_, (static_cast<std::uint64_t>(step) << 1) ^ static_cast<std::uint64_t>(step >> 63));
    last = now;
  }
}

std::string AnswerWriter::finish() {
  std::string out = "VSA1";
  put_u32(out, static_cast<std::uint32_t>(json_.size()));
  out += json_;
  out += blob_;
  return out;
}

}  // namespace vramscope::serve
