// The fuzzer's bytes as decisions: which place to change, and into what.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "support/bytes.h"

namespace vramscope::fuzz {

class Choices {
 public:
  explicit Choices(support::ByteSpan input) : in_(input) {}

  bool done() const { return in_.left() == 0; }
  std::uint64_t below(std::uint64_t limit) {
    return limit <= 1 ? 0 : (limit <= 256 ? in_.fixed<std::uint8_t>() : in_.fixed<std::uint32_t>()) % limit;
  }
  // Numbers at which something overflows, wraps or runs out, and a few others.
  std::uint64_t number() {
    static constexpr std::array<std::uint64_t, 14> kKnown = {
        0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 1u << 16, ~0ull >> 1, ~0ull};
    const std::uint64_t which = below(kKnown.size() + 4);
    return which < kKnown.size() ? kKnown[which] : in_.fixed<std::uint16_t>();
  }

  // Changes the bytes once, here or there. `resize` false: their number stays.
  void edit(support::Buffer& bytes, bool resize) {
    const std::size_t at = static_cast<std::size_t>(below(bytes.size()));
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t rest = bytes.size() - at;
    switch (below(resize ? 6 : 3)) {
      case 0:
        if (rest > 0) *place ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:
        if (rest > 0) *place = static_cast<std::uint8_t>(number());
        break;
      case 2: {  // a number of 4 or 8 bytes
        const std::uint64_t value = number();
        std::memcpy(bytes.data() + at, &value, std::min<std::size_t>(rest, below(2) == 0 ? 4 : 8));
        break;
      }
      case 3: {  // a number of variable length
        support::Buffer coded;
        support::put_varint(coded, number());
        if (rest > 0) bytes.erase(place);
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), coded.begin(), coded.end());
        break;
      }
      case 4:
        bytes.erase(place, place + static_cast<std::ptrdiff_t>(std::min<std::size_t>(rest, below(16))));
        break;
      default: {
        const support::Buffer copy(place, place + static_cast<std::ptrdiff_t>(std::min<std::size_t>(rest, below(64))));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size())), copy.begin(), copy.end());
        break;
      }
    }
  }

 private:
  support::ByteReader in_;
};

}  // namespace vramscope::fuzz
