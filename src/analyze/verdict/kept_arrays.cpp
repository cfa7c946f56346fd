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
// The innermost function on the stack of every tensor that TensorFlow makes of an array outside graphs.
constexpr std::string_view kConversion = "convert_to_eager_tensor";
constexpr std::string_view kSourceTag = "source of a dataset";

// A variable whose initial value was an array: that it stays is what it is for.
bool is_variable(trace::Category category) {
  using trace::Category;
  return category == Category::parameter || category == Category::buffer || category == Category::optimizer_state;
}

bool is_conversion(const trace::Dictionaries& dictionaries, const trace::Site& site) {
  const auto stack = static_cast<std::size_t>(site.stack);
  if (stack >= dictionaries.stacks.size() || dictionaries.stacks[stack].frames.empty()) return false;
  const auto frame = static_cast<std::size_t>(dictionaries.stacks[stack].frames.front());
  return frame < dictionaries.frames.size() && text_of(dictionaries, dictionaries.frames[frame].function) == kConversion;
}

}  // namespace

std::vector<KeptArray> kept_arrays(const Store& store, const PoolSet& pools, Moment at, Moment training) {
  std::map<std::string, KeptArray> by_line;
  for_each_live(store, at, [&](std::uint32_t alloc) {
    const Kind& kind = store.kind_of(alloc);
    if (kind.granted < kLarge || kind.pool >= pools.size() || pools[kind.pool] == 0 || kind.line == 0) return;
    if (store.birth[alloc] >= training || !is_conversion(store.dictionaries(), store.site_of(kind))) return;
    if (tag_name(store, alloc) == kSourceTag || is_variable(store.attributes_of(alloc).category())) return;
    KeptArray& array = by_line[std::string(store.name(kind.line))];
    array.bytes += kind.granted;
    array.tensors += 1;
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
  // A dataset of slices keeps the whole array too, in host memory.
  const bool on_device = place.device >= 0;
  out.cause = on_device ? "Outside tf.function, tf.constant and tf.convert_to_tensor copy a whole array to the device at once."
                        : "tf.constant and tf.convert_to_tensor copy a whole array at once; the array itself may stay as well.";
  out.remedy = on_device
                   ? "Read it batch by batch with tf.data.Dataset.from_tensor_slices, or convert it inside tf.device(\"CPU\")."
                   : "Convert one batch at a time, or read it with tf.data.Dataset.from_generator.";
  out.at_stake = array.bytes;
  out.view = "peak";
  out.at = at;
  out.where = fmt::format("line:{}", array.line);
  return out;
}

}  // namespace vramscope::analyze
