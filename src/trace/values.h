// The integers of the model as the 64-bit values that columns consist of, and back.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "support/bytes.h"

namespace vramscope::trace {

template <typename T>
constexpr std::uint64_t to_value(T field) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<std::uint64_t>(static_cast<std::underlying_type_t<T>>(field));
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return support::zigzag(field);
  } else {
    static_assert(std::is_unsigned_v<T>);
    return field;
  }
}

template <typename T>
constexpr T from_value(std::uint64_t value) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return support::unzigzag(value);
  } else {
    return static_cast<T>(value);
  }
}

// The largest value that T can represent.
template <typename T>
constexpr std::uint64_t value_limit() {
  if constexpr (std::is_enum_v<T>) {
    return std::numeric_limits<std::underlying_type_t<T>>::max();
  } else if constexpr (std::is_same_v<T, bool>) {
    return 1;
  } else if constexpr (std::is_signed_v<T>) {
    return ~std::uint64_t{0};
  } else {
    return std::numeric_limits<T>::max();
  }
}

}  // namespace vramscope::trace
