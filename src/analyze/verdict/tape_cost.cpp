#include "analyze/verdict/tape_cost.h"

#include <algorithm>
#include <string_view>

namespace vramscope::analyze {
namespace {

// A tape frees what it alone keeps right after it died: up to the next allocation, what is freed was its, if it was made in its
// lifetime.
Bytes freed_after(const Store& store, std::uint64_t died, std::uint64_t born) {
  Bytes sum = 0;
  for (std::uint64_t pos = died; pos < store.events(); ++pos) {
    const std::uint32_t ref = store.ref[pos];
    if (ref == kNone32) continue;  // neither an allocation nor a free
    if ((ref & 1u) == 0) break;
    const std::uint32_t alloc = ref >> 1;
    if (alloc < store.allocs() && store.birth[alloc] >= born) sum += store.kind_of(alloc).granted;
  }
  return sum;
}

}  // namespace

std::map<std::string, Bytes> kept_by_tapes(const Store& store) {
  struct Tape {
    std::uint64_t born;
    std::string_view where;
  };
  std::map<std::int64_t, Tape> alive;
  std::map<std::string, Bytes> out;
  for (const auto& mark : store.marks) {
    if (mark.row.kind != trace::MarkKind::tape || store.text(mark.row.name) != "persistent") continue;
    if (mark.row.edge == trace::MarkEdge::begin) {
      alive[mark.row.number] = {mark.pos, store.text(mark.row.detail)};
    } else if (const auto tape = alive.find(mark.row.number); tape != alive.end()) {
      const std::string_view where = tape->second.where;
      Bytes& most = out[std::string(where.substr(where.rfind('/') + 1))];
      most = std::max(most, freed_after(store, mark.pos, tape->second.born));
      alive.erase(tape);
    }
  }
  return out;
}

}  // namespace vramscope::analyze
