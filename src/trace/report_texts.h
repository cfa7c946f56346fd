// The texts of a reported event, whatever its kind.
#pragma once

#include <type_traits>
#include <variant>

#include "trace/gen/schema.h"

namespace vramscope::trace {

// Calls f(id) for each of them; ids of a report that is not const can be changed.
template <typename AnyReport, typename F>
  requires std::is_same_v<std::remove_const_t<AnyReport>, Report>
void for_each_text(AnyReport& report, F&& f) {
  std::visit(
      [&](auto& row) {
        for_each_field<std::remove_cvref_t<decltype(row)>>([&](std::uint64_t, auto member) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(row.*member)>, StringId>) f(row.*member);
        });
      },
      report);
}

}  // namespace vramscope::trace
