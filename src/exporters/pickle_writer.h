// Writes a Python pickle of dictionaries, lists, texts and numbers (protocol 4, which every reader of PyTorch's snapshots knows).
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tsl/robin_map.h>

#include "exporters/output.h"
#include "exporters/utf8.h"

namespace vramscope::exporters {

class PickleWriter {
 public:
  explicit PickleWriter(Output& out) : out_(out) { out_.write(std::string_view("\x80\x04", 2)); }

  // A dictionary: begin_dict, then key and value in turn, then end_dict. A list: begin_list, then item() before each value, then
  // end_list.
  void begin_dict() { raw("}("); }
  void end_dict() { raw("u"); }
  void begin_list() {
    raw("](");
    items_.push_back(0);
  }
  void item() {
    if (++items_.back() % kBatch == 0) raw("e(");
  }
  void end_list() {
    raw("e");
    items_.pop_back();
  }
  // A tuple of the two values that follow in `f`.
  template <typename F>
  void pair(F&& f) {
    f();
    raw("\x86");
  }
  void text(std::string_view any) {
    std::string value = as_utf8(any);
    const auto found = texts_.find(value);
    if (found != texts_.end()) return get(found->second);
    std::string& buffer = out_.buffer();
    buffer += 'X';
    fixed(static_cast<std::uint32_t>(value.size()));
    buffer += value;
    texts_.emplace(std::move(value), memoize());
  }
  void integer(std::int64_t value) {
    if (value >= 0 && value < 256) {
      raw("K");
      out_.buffer() += static_cast<char>(value);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      raw("J");
      fixed(static_cast<std::int32_t>(value));
    } else {
      raw("\x8a\x08");
      fixed(value);
    }
  }
  void number(std::uint64_t value) {
    if (value <= INT64_MAX) return integer(static_cast<std::int64_t>(value));
    raw("\x8a\x09");  // one byte more: the sign
    fixed(value);
    out_.buffer() += '\0';
  }
  void flag(bool value) { raw(value ? "\x88" : "\x89"); }

  // Remembers the value that was just written, to be written again by get().
  std::uint32_t memoize() {
    raw("\x94");
    return memo_++;
  }
  void get(std::uint32_t memo) {
    raw("j");
    fixed(memo);
  }

  template <typename T>
  void member(std::string_view key, const T& value) {
    text(key);
    if constexpr (std::is_same_v<T, bool>)
      flag(value);
    else if constexpr (std::is_unsigned_v<T>)
      number(value);
    else if constexpr (std::is_integral_v<T>)
      integer(value);
    else
      text(value);
  }
  void finish() { raw("."); }

 private:
  void raw(std::string_view bytes) { out_.write(bytes); }
  template <typename T>
  void fixed(T value) {
    static_assert(std::endian::native == std::endian::little);
    out_.write({reinterpret_cast<const char*>(&value), sizeof value});
  }

  // As Python does. memory_viz passes a batch as the arguments of one call, of which a browser takes about 100,000.
  static constexpr std::uint64_t kBatch = 1000;

  Output& out_;
  std::vector<std::uint64_t> items_;  // of the lists that are open
  std::uint32_t memo_ = 0;
  tsl::robin_map<std::string, std::uint32_t> texts_;
};

}  // namespace vramscope::exporters
