// The unit in which a table or a plot shows its figures: the head names it once, so that figures can be compared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "support/units.h"

namespace vramscope::cli {

class Unit {
 public:
  // KiB where not even the largest figure comes to one MiB.
  static Unit for_largest(std::uint64_t bytes) { return bytes > 0 && bytes < kMiB ? Unit(1024, "KiB") : Unit(kMiB, "MiB"); }
  template <typename Range, typename Figure>
  static Unit for_all(const Range& range, Figure figure) {
    std::uint64_t largest = 0;
    for (const auto& item : range) largest = std::max<std::uint64_t>(largest, figure(item));
    return for_largest(largest);
  }

  const std::string& name() const { return name_; }
  std::string operator()(std::uint64_t bytes) const { return support::format_in(bytes, bytes_); }
  std::string with_sign(std::int64_t bytes) const {
    if (bytes == 0) return "0";
    const auto size = static_cast<std::uint64_t>(bytes);
    return bytes < 0 ? "−" + (*this)(0 - size) : "+" + (*this)(size);
  }

 private:
  static constexpr std::uint64_t kMiB = 1u << 20;
  Unit(std::uint64_t bytes, const char* name) : bytes_(bytes), name_(name) {}
  std::uint64_t bytes_;
  std::string name_;
};

}  // namespace vramscope::cli
