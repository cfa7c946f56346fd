#include "serve/answer.h"

#include <bit>
#include <cmath>
#include <cstring>

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

void AnswerWriter::column(const std::vector<double>& values) {
  const bool whole = all_whole(values);
  json_.begin_object().key("$").begin_array();
  json_.value(blob_.size()).value(values.size()).value(whole ? "d" : "f").end_array().end_object();
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
  put_u32(out, static_cast<std::uint32_t>(json_.text().size()));
  out += json_.text();
  out += blob_;
  return out;
}

}  // namespace vramscope::serve
