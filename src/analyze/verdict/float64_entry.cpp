#include "analyze/verdict/float64_entry.h"

#include <algorithm>
#include <vector>

#include "analyze/query/block_text.h"
#include "analyze/verdict/newest_reports.h"

namespace vramscope::analyze {
namespace {

constexpr Bytes kWide = 64 << 10;  // what is smaller is a scalar, a counter, a seed

template <typename Row>
std::string line_of_largest(const Store& store) {
  const std::vector<Row> rows = newest_reports<Row>(store);
  const auto most = std::ranges::max_element(rows, {}, &Row::bytes);
  return most == rows.end() ? std::string() : reported_line(store, *most);
}

// Values flow forward in time: the first block of the type is where it began.
std::string line_of_first(const Store& store) {
  std::vector<char> wide(store.kinds.size(), 0);
  bool any = false;
  for (std::size_t k = 0; k < store.kinds.size(); ++k) {
    const Kind& kind = store.kinds[k];
    const trace::Site& site = store.site_of(kind);
    if (kind.line == 0 || kind.requested < kWide || site.dtype == 0 || kind.pool >= store.dictionaries().pools.size()) continue;
    wide[k] = dtype_text(site.dtype, store.dictionaries().pools[kind.pool].framework) == "float64" ? 1 : 0;
    any = any || wide[k] != 0;
  }
  if (!any) return {};
  for (std::size_t alloc = 0; alloc < store.allocs(); ++alloc)
    if (const std::uint32_t k = store.kind[alloc]; k < wide.size() && wide[k] != 0)
      return std::string(store.name(store.kinds[k].line));
  return {};
}

}  // namespace

std::string float64_entry(const Store& store) {
  std::string line = line_of_largest<trace::Float64Enters>(store);
  if (line.empty()) line = line_of_largest<trace::Float64Variable>(store);
  return line.empty() ? line_of_first(store) : line;
}

Bytes widest_variable(const Store& store) {
  const auto rows = newest_reports<trace::Float64Variable>(store);
  const auto most = std::ranges::max_element(rows, {}, &trace::Float64Variable::bytes);
  return most == rows.end() ? 0 : most->bytes;
}

}  // namespace vramscope::analyze
