#include "capture/stacks/python_code.h"

#include <initializer_list>

#include "capture/stacks/readable.h"

namespace vramscope::stacks {
namespace {

bool readable_range(std::uint64_t address, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += 4096) {
    if (!readable(address + at, 1)) return false;
  }
  return bytes == 0 || readable(address + bytes - 1, 1);
}

std::size_t put_utf8(std::uint32_t c, char* out, std::size_t room) {
  const auto byte = [](std::uint32_t v) { return static_cast<char>(static_cast<unsigned char>(v)); };
  if (c < 0x80 && room >= 1) {
    out[0] = byte(c);
    return 1;
  }
  if (c < 0x800 && room >= 2) {
    out[0] = byte(0xc0 | (c >> 6));
    out[1] = byte(0x80 | (c & 0x3f));
    return 2;
  }
  if (c < 0x10000 && room >= 3) {
    out[0] = byte(0xe0 | (c >> 12));
    out[1] = byte(0x80 | ((c >> 6) & 0x3f));
    out[2] = byte(0x80 | (c & 0x3f));
    return 3;
  }
  if (c >= 0x10000 && room >= 4) {
    out[0] = byte(0xf0 | ((c >> 18) & 7));
    out[1] = byte(0x80 | ((c >> 12) & 0x3f));
    out[2] = byte(0x80 | ((c >> 6) & 0x3f));
    out[3] = byte(0x80 | (c & 0x3f));
    return 4;
  }
  return 0;
}

constexpr std::uint32_t kAsciiState = 1 | (1 << 3) | (1 << 4);  // kind 1, compact, ascii

// Steps through a bytes object with bounds.
struct Bytes {
  std::uint64_t at = 0;
  std::uint64_t end = 0;
  bool more() const { return at < end; }
  std::uint8_t next() { return at < end ? peek<std::uint8_t>(at++) : std::uint8_t{0}; }
  std::uint32_t varint() {
    std::uint8_t byte = next();
    std::uint32_t value = byte & 63;
    for (unsigned shift = 6; (byte & 64) != 0 && shift < 30 && more(); shift += 6) {
      byte = next();
      value |= static_cast<std::uint32_t>(byte & 63) << shift;
    }
    return value;
  }
  std::int32_t signed_varint() {
    const std::uint32_t value = varint();
    const auto half = static_cast<std::int32_t>(value >> 1);
    return (value & 1) != 0 ? -half : half;
  }
};

bool open_bytes(const PythonLayout& layout, std::uint64_t object, Bytes& out) {
  if (!readable(object, layout.bytes_data)) return false;
  const auto size = peek<std::uint64_t>(object + layout.bytes_size);
  if (size > (1u << 24)) return false;
  out.at = object + layout.bytes_data;
  out.end = out.at + size;
  return readable_range(out.at, size);
}

// 3.9: pairs (bytes of code, signed lines), each relative to the previous one.
std::int64_t line_from_increments(Bytes table, std::int64_t line, std::int64_t offset) {
  std::int64_t at = 0;
  while (table.more()) {
    at += table.next();
    if (at > offset) break;
    line += static_cast<std::int8_t>(table.next());
  }
  return line;
}

// 3.10: pairs (length of the range, signed lines relative to the previous range); -128 = the range has no line.
std::int64_t line_from_ranges(Bytes table, std::int64_t line, std::int64_t offset) {
  std::int64_t at = 0;
  while (table.more()) {
    at += table.next();
    const auto delta = static_cast<std::int8_t>(table.next());
    if (delta != -128) line += delta;
    if (offset < at) return delta == -128 ? 0 : line;
  }
  return line;
}

// 3.11 and later: one entry per run of instructions, first byte = 1, code (4 bits), length - 1 (3 bits).
std::int64_t line_from_locations(Bytes table, std::int64_t line, std::int64_t offset) {
  constexpr unsigned kNone = 15;
  constexpr unsigned kLong = 14;
  constexpr unsigned kNoColumns = 13;
  constexpr unsigned kOneLine0 = 10;
  std::int64_t at = 0;
  while (table.more()) {
    const std::uint8_t first = table.next();
    const unsigned kind = (first >> 3) & 15;
    at += 2 * ((first & 7) + 1);
    if (kind == kLong || kind == kNoColumns) {
      line += table.signed_varint();
    } else if (kind >= kOneLine0 && kind < kNoColumns) {
      line += kind - kOneLine0;
    }
    if (offset < at) return kind == kNone ? 0 : line;
    while (table.more() && (peek<std::uint8_t>(table.at) & 128) == 0) table.next();  // columns
  }
  return line;
}

}  // namespace

std::size_t read_text(const PythonLayout& layout, std::uint64_t object, char* out, std::size_t capacity) {
  if (!readable(object, layout.text_wide_data)) return 0;
  const auto length = peek<std::uint64_t>(object + layout.text_length);
  const std::uint32_t state = peek<std::uint32_t>(object + layout.text_state) >> layout.text_kind_shift;
  const std::uint32_t kind = state & 7;
  const bool compact = (state & 8) != 0;
  const bool ascii = (state & 16) != 0;
  if (!compact || (kind != 1 && kind != 2 && kind != 4) || length > (1u << 20)) return 0;
  const std::uint64_t data = object + (ascii ? layout.text_ascii_data : layout.text_wide_data);
  const std::uint64_t wanted = length < capacity ? length : capacity;
  if (!readable_range(data, wanted * kind)) return 0;
  if (ascii) {
    std::memcpy(out, reinterpret_cast<const void*>(data), wanted);
    return wanted;
  }
  std::size_t used = 0;
  for (std::uint64_t i = 0; i < wanted; ++i) {
    const std::uint32_t c = kind == 1   ? peek<std::uint8_t>(data + i)
                            : kind == 2 ? peek<std::uint16_t>(data + 2 * i)
                                        : peek<std::uint32_t>(data + 4 * i);
    const std::size_t put = put_utf8(c, out + used, capacity - used);
    if (put == 0) break;
    used += put;
  }
  return used;
}

bool learn_text_state(PythonLayout& layout, std::uint64_t ascii_text) {
  if (!readable(ascii_text, layout.text_wide_data)) return false;
  const auto length = peek<std::uint64_t>(ascii_text + layout.text_length);
  if (length == 0 || length > 4096) return false;
  const std::uint64_t data = ascii_text + layout.text_ascii_data;
  if (!readable_range(data, length + 1) || peek<char>(data + length) != '\0') return false;
  for (std::uint64_t i = 0; i < length; ++i) {
    if (peek<signed char>(data + i) < ' ') return false;
  }
  const auto state = peek<std::uint32_t>(ascii_text + layout.text_state);
  for (const unsigned shift : {2u, 8u, 16u}) {
    if (((state >> shift) & 31) == kAsciiState) {
      layout.text_kind_shift = static_cast<std::uint16_t>(shift);
      return true;
    }
  }
  return false;
}

std::uint32_t line_at(const PythonLayout& layout, std::uint64_t code, std::int64_t offset) {
  const auto first = peek<std::int32_t>(code + layout.code_first_line);
  if (offset < 0) return static_cast<std::uint32_t>(first < 0 ? 0 : first);  // the frame has not started
  Bytes table;
  if (!open_bytes(layout, peek<std::uint64_t>(code + layout.code_lines), table)) return 0;
  std::int64_t line = 0;
  switch (layout.line_table) {
    case LineTable::increments:
      line = line_from_increments(table, first, offset);
      break;
    case LineTable::ranges:
      line = line_from_ranges(table, first, offset);
      break;
    case LineTable::locations:
      line = line_from_locations(table, first, offset);
      break;
  }
  return line > 0 ? static_cast<std::uint32_t>(line) : 0;
}

}  // namespace vramscope::stacks
