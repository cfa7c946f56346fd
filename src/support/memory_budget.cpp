#include "support/memory_budget.h"

#include <fmt/format.h>

#include "support/units.h"

namespace vramscope::support {

std::string more_than(std::uint64_t limit) {
  return fmt::format("more than {}, the limit for a file of its size", format_size(limit));
}

}  // namespace vramscope::support
