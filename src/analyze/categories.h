// Categories as people see them: the trace's finer words folded into nine, in the order of stacks (what stays is below).
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/gen/schema.h"

namespace vramscope::analyze {

enum class Shown : std::uint8_t {
  parameters,
  optimizer_state,
  constants,
  inputs,
  activations,
  gradients,
  temporaries,
  xla_temporaries,
  unknown
};
inline constexpr std::size_t kShown = 9;

constexpr Shown shown(trace::Category category) {
  using trace::Category;
  switch (category) {
    case Category::parameter:
    case Category::buffer:
      return Shown::parameters;  // buffers are weights that are not trained
    case Category::optimizer_state:
      return Shown::optimizer_state;
    case Category::constant:
      return Shown::constants;
    case Category::input:
      return Shown::inputs;
    case Category::activation:
      return Shown::activations;
    case Category::gradient:
      return Shown::gradients;
    case Category::temporary:
    case Category::workspace:
      return Shown::temporaries;
    case Category::xla_temporary:
      return Shown::xla_temporaries;
    case Category::unknown:
      break;
  }
  return Shown::unknown;
}

std::string_view name_of(Shown category);

}  // namespace vramscope::analyze
