// Categories as users see them: those of the trace combined into twelve, in the order of stacks (long-lived ones at the bottom).
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/gen/schema.h"

namespace vramscope::analyze {

enum class Shown : std::uint8_t {
  parameters,
  buffers,  // variables that are not trained
  optimizer_state,
  constants,
  inputs,
  activations,
  gradients,             // of parameters
  activation_gradients,  // passed from op to op in the backward pass
  workspace,
  temporaries,
  xla_temporaries,
  unknown
};
inline constexpr std::size_t kShown = 12;

constexpr Shown shown(trace::Category category) {
  using trace::Category;
  switch (category) {
    case Category::parameter:
      return Shown::parameters;
    case Category::buffer:
      return Shown::buffers;
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
    case Category::activation_gradient:
      return Shown::activation_gradients;
    case Category::workspace:
      return Shown::workspace;
    case Category::temporary:
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
