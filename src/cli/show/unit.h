// The unit in which a table or a plot shows its figures: the head names it once, so that figures can be compared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "support/units.h"

namespace vramscope::cli {

class Unit {
 public:
  // The unit of support::unit_for() for the largest value; MiB if there are no values.
  static Unit for_largest(std::uint64_t bytes) { return Unit(support::unit_for(bytes == 0 ? 1u << 20 : bytes)); }
  static Unit named(std::string_view name) { return Unit(support::unit_named(name)); }
  template <typename Range, typename Figure>
  static Unit for_all(const Range& range, Figure figure) {
    std::uint64_t largest = 0;
    for (const auto& item : range) largest = std::max<std::uint64_t>(largest, figure(item));
    return for_largest(largest);
  }

  std::string name() const { return std::string(unit_.name); }
  std::string operator()(std::uint64_t bytes) const {
    return unit_.bytes == 1 ? support::format_count(bytes) : support::format_in(bytes, unit_.bytes);
  }
  std::string with_sign(std::int64_t bytes) const {
    if (bytes == 0) return (*this)(0);
    const auto size = static_cast<std::uint64_t>(bytes);
    return bytes < 0 ? "−" + (*this)(0 - size) : "+" + (*this)(size);
  }

 private:
  explicit Unit(support::SizeUnit unit) : unit_(unit) {}
  support::SizeUnit unit_;
};

}  // namespace vramscope::cli
