#include "analyze/query/layer_fold.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <vector>

#include <fmt/format.h>

namespace vramscope::analyze {
namespace {

constexpr std::string_view kSeparators = "/.";
constexpr std::array<std::uint64_t, 10> kRanges = {1, 2, 4, 5, 10, 20, 25, 50, 100, 1000};
constexpr std::size_t kLongestNumber = 9;

std::size_t parts_of(std::string_view path) {
  return 1 + static_cast<std::size_t>(
                 std::ranges::count_if(path, [](char c) { return kSeparators.find(c) != std::string_view::npos; }));
}

// Whether the largest groups hold nine tenths of all bytes.
bool covers(const std::map<std::string, Bytes>& layers, const LayerFold& fold, std::size_t most) {
  std::map<std::string, Bytes> groups;
  Bytes all = 0, shown = 0;
  for (const auto& [name, bytes] : layers) {
    groups[fold(name)] += bytes;
    all += bytes;
  }
  std::vector<Bytes> sizes;
  for (const auto& [name, bytes] : groups) sizes.push_back(bytes);
  std::ranges::sort(sizes, std::greater{});
  for (std::size_t i = 0; i < std::min(most, sizes.size()); ++i) shown += sizes[i];
  return shown >= all - all / 10;
}

}  // namespace

LayerFold LayerFold::for_largest(const std::map<std::string, Bytes>& layers, std::size_t most) {
  std::size_t deepest = 1;
  for (const auto& [name, bytes] : layers) deepest = std::max(deepest, parts_of(name));
  for (std::size_t depth = deepest; depth > 0; --depth)
    for (const std::uint64_t range : kRanges)
      if (const LayerFold fold(depth, range); covers(layers, fold, most)) return fold;
  return {1, kRanges.back()};
}

std::string LayerFold::operator()(std::string_view layer) const {
  std::string_view kept = layer;
  std::size_t parts = 0;
  for (std::size_t i = 0; i < layer.size() && kept.size() == layer.size(); ++i)
    if (kSeparators.find(layer[i]) != std::string_view::npos && ++parts >= depth_) kept = layer.substr(0, i);
  const bool cut = kept.size() < layer.size();
  if (range_ > 1) {
    const std::size_t digits = kept.find_last_not_of("0123456789") + 1;
    std::uint64_t number = 0;
    if (digits < kept.size() && kept.size() - digits <= kLongestNumber) {
      std::from_chars(kept.data() + digits, kept.data() + kept.size(), number);
      const std::uint64_t first = number / range_ * range_;
      return fmt::format("{}{} to {}", kept.substr(0, digits), first, first + range_ - 1);
    }
  }
  return cut ? fmt::format("{}{}*", kept, layer[kept.size()]) : std::string(kept);
}

}  // namespace vramscope::analyze
