#include "analyze/verdict/kept_arrays.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "analyze/index/lifetime.h"
#include "analyze/query/block_text.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

constexpr Bytes kLarge = Bytes{1} << 20;
constexpr std::string_view kSourceTag = "source of a dataset";

// A variable whose initial value was an array: that it stays is what it is for.
bool is_variable(trace::Category category) {
  using trace::Category;
  return category == Category::parameter || category == Category::buffer || category == Category::optimizer_state;
}

bool is_conversion(const trace::Dictionaries& dictionaries, const trace::Site& site, std::string_view function) {
  const auto stack = static_cast<std::size_t>(site.stack);
  if (function.empty() || stack >= dictionaries.stacks.size() || dictionaries.stacks[stack].frames.empty()) return false;
  const auto frame = static_cast<std::size_t>(dictionaries.stacks[stack].frames.front());
  return frame < dictionaries.frames.size() && text_of(dictionaries, dictionaries.frames[frame].function) == function;
}

}  // namespace

std::vector<KeptArray> kept_arrays(const Store& store, const PoolSet& pools, Moment at, Moment training) {
  std::map<std::string, KeptArray> by_line;
  for_each_live(store, at, [&](std::uint32_t alloc) {
    const Kind& kind = store.kind_of(alloc);
    if (kind.granted < kLarge || kind.pool >= pools.size() || pools[kind.pool] == 0 || kind.line == 0) return;
    const ArrayConversion& conversion = framework_of(store, kind).array_conversion;
    if (store.birth[alloc] >= training || !is_conversion(store.dictionaries(), store.site_of(kind), conversion.function)) return;
    if (tag_name(store, alloc) == kSourceTag || is_variable(store.attributes_of(alloc).category())) return;
    KeptArray& array = by_line[std::string(store.name(kind.line))];
    array.bytes += kind.granted;
    array.tensors += 1;
    array.conversion = &conversion;
  });
  std::vector<KeptArray> out;
  for (auto& [line, array] : by_line) {
    array.line = line;
    out.push_back(std::move(array));
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &KeptArray::bytes);
  return out;
}

Finding kept_array_finding(const KeptArray& array, const Place& place, std::string_view at) {
  Finding out;
  out.id = "array-on-device";
  out.title = fmt::format(
      "{} on {} is {} that {} makes from arrays and keeps during training.", support::format_size(array.bytes), place.name,
      array.tensors == 1 ? "a tensor" : support::format_plural(array.tensors, "tensor", "tensors"), array.line);
  const auto& [cause, remedy] = place.device >= 0 ? array.conversion->on_device : array.conversion->on_host;
  out.cause = cause;
  out.remedy = remedy;
  out.at_stake = array.bytes;
  out.view = "peak";
  out.at = at;
  out.where = fmt::format("line:{}", array.line);
  return out;
}

}  // namespace vramscope::analyze
