#include "analyze/steps/shape_change.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <ranges>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyze/steps/usual.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

constexpr std::size_t kMostBlocks = 200'000;  // of a step that are compared
constexpr std::size_t kMostSteps = 256;       // that are explained: each takes a look at all of its blocks
constexpr std::size_t kMostNamed = 3;         // steps in the sentence

struct Shaped {
  trace::StringId shape{};
  Bytes bytes = 0;
  bool of_weights = false;  // a gradient, or a value of the optimizer: as large as the variable, whatever the inputs are
};

bool is_of_weights(const Attributes& attributes) {
  return attributes.category() == trace::Category::gradient || attributes.stage() == Stage::optimizer;
}
// By op, kind of allocation, and which one of these it is in the step.
using Key = std::tuple<trace::StringId, trace::StringId, std::uint32_t>;

std::map<Key, Shaped> shapes_of(const Store& store, const Step& step) {
  std::map<std::pair<trace::StringId, trace::StringId>, std::uint32_t> seen;
  std::map<Key, Shaped> out;
  auto alloc =
      static_cast<std::size_t>(std::lower_bound(store.birth.begin(), store.birth.end(), step.begin) - store.birth.begin());
  for (; alloc < store.allocs() && store.birth[alloc] < step.end && out.size() < kMostBlocks; ++alloc) {
    const Kind& kind = store.kind_of(alloc);
    const trace::Site& site = store.site_of(kind);
    if (site.op == trace::StringId{} || site.shape == trace::StringId{}) continue;
    if (store.attributes_of(alloc).category() == trace::Category::input) continue;
    const std::uint32_t which = seen[{site.op, site.region}]++;
    out.emplace(Key{site.op, site.region, which}, Shaped{site.shape, kind.granted, is_of_weights(store.attributes_of(alloc))});
  }
  return out;
}

// "[30,8,1024]"; empty for anything else.
std::vector<std::uint64_t> axes_of(std::string_view shape) {
  std::vector<std::uint64_t> out;
  if (shape.size() < 2 || shape.front() != '[' || shape.back() != ']') return out;
  const char* at = shape.data() + 1;
  const char* const end = shape.data() + shape.size() - 1;
  while (at < end) {
    std::uint64_t length = 0;
    const auto [after, error] = std::from_chars(at, end, length);
    if (error != std::errc{}) return {};
    out.push_back(length);
    at = after + (after < end && *after == ',' ? 1 : 0);
    if (at == after && at < end) return {};
  }
  return out;
}

struct Changes {
  Bytes bytes = 0;                                                              // of blocks that changed
  std::map<std::tuple<std::size_t, std::uint64_t, std::uint64_t>, Bytes> axes;  // axis, usual length, length here
};

std::string in_words(const ShapeChange& change) {
  const bool less = change.here < change.usual;
  if (change.samples) return fmt::format("a {} batch: {} instead of {}", less ? "smaller" : "larger", change.here, change.usual);
  if (change.axis == 0)
    return fmt::format("{} rows per tensor: {} instead of {}", less ? "fewer" : "more", change.here, change.usual);
  return fmt::format("{} inputs: {} instead of {} along axis {}", less ? "shorter" : "longer", change.here, change.usual,
                     change.axis);
}

struct Alike {
  ShapeChange change;
  std::vector<std::size_t> steps;  // indices
};

// Each of them is the last one of its epoch.
bool end_epochs(const Steps& steps, const std::vector<std::size_t>& indices) {
  return std::ranges::all_of(indices, [&](std::size_t i) {
    const Step& step = steps.steps[i];
    std::size_t next = i + 1;
    while (next < steps.steps.size() && steps.steps[next].kind != step.kind) ++next;
    return step.epoch > 0 && (next == steps.steps.size() || steps.steps[next].epoch != step.epoch);
  });
}

std::string sentence_of(const Steps& steps, const Alike& group) {
  const std::string what = in_words(group.change);
  if (group.change.samples && group.change.here < group.change.usual && end_epochs(steps, group.steps))
    return fmt::format("The last step of {} has {}.", group.steps.size() > 1 ? "each epoch" : "an epoch", what);
  std::string numbers;
  for (std::size_t i = 0; i < std::min(group.steps.size(), kMostNamed); ++i)
    numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", steps.steps[group.steps[i]].number);
  if (group.steps.size() == 1) return fmt::format("Step {} has {}.", numbers, what);
  return fmt::format("{} steps ({}{}) have {}.", support::format_count(group.steps.size()), numbers,
                     group.steps.size() > kMostNamed ? ", ..." : "", what);
}

}  // namespace

std::optional<ShapeChange> shape_change(const Store& store, const Step& usual, const Step& here) {
  const bool known = usual.samples && here.samples && usual.batches == here.batches;
  if (known && *usual.samples != *here.samples) return ShapeChange{0, *usual.samples, *here.samples, true};
  const std::map<Key, Shaped> expected = shapes_of(store, usual);
  // By rank: of a batch of sequences, some ops see one long list of rows. The tensors of the highest rank have each axis by
  // itself.
  std::map<std::size_t, Changes> by_rank;
  Bytes all = 0;
  for (const auto& [key, block] : shapes_of(store, here)) {
    const auto same = expected.find(key);
    if (same == expected.end() || same->second.shape == block.shape) continue;
    const auto before = axes_of(store.text(same->second.shape)), after = axes_of(store.text(block.shape));
    if (before.size() != after.size() || before == after) continue;
    // Another model, whose layers have the same names. (The rows of a sparse gradient are those that the inputs name.)
    if (block.of_weights && !std::ranges::equal(before | std::views::drop(1), after | std::views::drop(1))) return std::nullopt;
    const Bytes weight = std::max(block.bytes, same->second.bytes);
    all += weight;
    Changes& changes = by_rank[before.size()];
    changes.bytes += weight;
    for (std::size_t axis = known ? 1 : 0; axis < before.size(); ++axis)
      if (before[axis] != after[axis]) changes.axes[{axis, before[axis], after[axis]}] += weight;
  }
  for (const auto& [rank, changes] : std::views::reverse(by_rank)) {
    const auto most = std::ranges::max_element(changes.axes, {}, [](const auto& entry) { return entry.second; });
    if (changes.bytes * 10 < all || most == changes.axes.end() || most->second < changes.bytes / 2) continue;
    const auto& [axis, before, after] = most->first;
    return ShapeChange{axis, before, after};
  }
  return std::nullopt;
}

void explain_differences(const Store& store, Steps& steps) {
  const std::vector<std::size_t> steady = steady_steps(steps);
  if (steady.size() < 3) return;
  const Step usual = steps.steps[*usual_step(steps)];
  std::vector<Alike> groups;
  std::size_t looks = 0;
  for (const std::size_t i : steady) {
    Step& step = steps.steps[i];
    const Bytes apart = step.peak > usual.peak ? step.peak - usual.peak : usual.peak - step.peak;
    const Bytes other = step.allocated > usual.allocated ? step.allocated - usual.allocated : usual.allocated - step.allocated;
    if (apart * 20 <= usual.peak && other * 20 <= usual.allocated && step.samples == usual.samples) continue;
    if (++looks > kMostSteps) break;
    const auto change = shape_change(store, usual, step);
    if (!change) continue;
    if (step.why.empty() || step.outlier) step.why += (step.why.empty() ? "" : ", ") + in_words(*change);
    auto group = std::ranges::find(groups, *change, &Alike::change);
    if (group == groups.end()) group = groups.insert(groups.end(), Alike{*change, {}});
    group->steps.push_back(i);
  }
  if (groups.empty()) return;
  // Where lengths vary from step to step there is no usual one.
  if (groups.size() > kMostNamed) {
    const auto [shortest, longest] = std::ranges::minmax(groups, {}, [](const Alike& g) { return g.change.here; });
    const bool one_axis = std::ranges::all_of(groups, [&](const Alike& g) { return g.change.axis == groups[0].change.axis; });
    if (one_axis)
      steps.reason = fmt::format("{} vary from {} to {}{}.",
                                 groups[0].change.samples     ? "Batches"
                                 : groups[0].change.axis == 0 ? "Rows of the tensors"
                                                              : "Lengths of the inputs",
                                 std::min(shortest.change.here, groups[0].change.usual),
                                 std::max(longest.change.here, groups[0].change.usual),
                                 groups[0].change.axis == 0 ? "" : fmt::format(" along axis {}", groups[0].change.axis));
    return;
  }
  const auto largest = std::ranges::max_element(groups, {}, [](const Alike& g) { return g.steps.size(); });
  steps.reason = sentence_of(steps, *largest);
}

}  // namespace vramscope::analyze
