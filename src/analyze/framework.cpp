#include "analyze/framework.h"

#include <algorithm>

namespace vramscope::analyze {

const Framework& framework(trace::Framework id) {
  static constexpr Framework kNone{.id = trace::Framework::none, .word = "none", .name = {}};
  const auto all = frameworks();
  const auto found = std::ranges::find(all, id, &Framework::id);
  return found != all.end() ? **found : kNone;
}

const Framework& framework_of(const Store& store, const Kind& kind) {
  const auto& pools = store.dictionaries().pools;
  return framework(kind.pool < pools.size() ? pools[kind.pool].framework : trace::Framework::none);
}

std::string_view word_of(trace::Framework id) {
  const Framework& known = framework(id);
  return known.id == id ? known.word : trace::name_of(id);
}

}  // namespace vramscope::analyze
