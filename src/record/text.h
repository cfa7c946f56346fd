// Text for file names and messages, on the stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::record {

// Appends and never overflows: what does not fit is cut off.
template <std::size_t Capacity>
class Text {
 public:
  Text& add(const char* text) {
    while (text != nullptr && *text != '\0' && length_ + 1 < Capacity) data_[length_++] = *text++;
    data_[length_] = '\0';
    return *this;
  }
  Text& add(std::uint64_t value) {
    char digits[21];
    std::size_t at = sizeof digits;
    digits[--at] = '\0';
    do digits[--at] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    return add(digits + at);
  }
  void clear() {
    length_ = 0;
    data_[0] = '\0';
  }
  const char* c_str() const { return data_; }
  std::size_t size() const { return length_; }

 private:
  char data_[Capacity] = {};
  std::size_t length_ = 0;
};

}  // namespace vramscope::record
