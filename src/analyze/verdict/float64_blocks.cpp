#include "analyze/verdict/float64_blocks.h"

#include <tsl/robin_set.h>

#include <algorithm>
#include <variant>

#include "analyze/query/block_text.h"

namespace vramscope::analyze {
namespace {

constexpr Bytes kLarge = 64 << 10;  // what is smaller is a scalar, a counter, a seed

enum class Type : char { unknown, other, float64 };

Type type_of(const Store& store, const Kind& kind) {
  const trace::Site& site = store.site_of(kind);
  if (site.dtype == 0 || kind.pool >= store.dictionaries().pools.size()) return Type::unknown;
  const bool wide = dtype_text(site.dtype, store.dictionaries().pools[kind.pool].framework) == "float64";
  return wide ? Type::float64 : Type::other;
}

}  // namespace

Float64Blocks::Float64Blocks(const Store& store) : store_(store), wide_kind_(store.kinds.size(), 0) {
  tsl::robin_set<std::uint64_t> wide_ops;
  Bytes wide = 0, other = 0;  // of one block of each large kind
  for (std::size_t k = 0; k < store.kinds.size(); ++k) {
    const Kind& kind = store.kinds[k];
    const Type type = type_of(store, kind);
    if (type == Type::float64) {
      wide_kind_[k] = 1;
      wide_ops.insert(static_cast<std::uint64_t>(store.site_of(kind).op));
    }
    if (kind.granted >= kLarge && type != Type::unknown) (type == Type::float64 ? wide : other) += kind.granted;
  }
  if (wide_ops.empty()) return;
  const bool all_wide = wide > 0 && other * 20 < wide;  // the program has nothing else
  for (std::size_t k = 0; k < store.kinds.size(); ++k) {
    const Kind& kind = store.kinds[k];
    if (type_of(store, kind) != Type::unknown || kind.pool >= store.dictionaries().pools.size()) continue;
    const trace::StringId op = store.site_of(kind).op;
    const bool same_op = !store.text(op).empty() && wide_ops.contains(static_cast<std::uint64_t>(op));
    wide_kind_[k] = same_op || (all_wide && kind.granted >= kLarge) ? 1 : 0;
  }
  for (const trace::Report& report : store.reports)
    if (const auto* variable = std::get_if<trace::Float64Variable>(&report)) wide_variables_.push_back(variable->name);
  std::ranges::sort(wide_variables_);
}

bool Float64Blocks::is_wide_variable(std::uint64_t alloc) const {
  if (wide_variables_.empty()) return false;
  const auto it = std::ranges::lower_bound(store_.tagged, alloc, {}, &TaggedRow::alloc);
  return it != store_.tagged.end() && it->alloc == alloc &&
         std::ranges::binary_search(wide_variables_, static_cast<trace::StringId>(it->name));
}

}  // namespace vramscope::analyze
