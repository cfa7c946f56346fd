// From the categories of the trace to those that users see.
#pragma once

#include <cstddef>
#include <string_view>

#include "analyze/gen/categories.h"
#include "trace/gen/schema.h"

namespace vramscope::analyze {

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

constexpr std::string_view name_of(Shown category) { return kCategoryNames[static_cast<std::size_t>(category)]; }

}  // namespace vramscope::analyze
