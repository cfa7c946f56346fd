// Few groups of many layers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "analyze/query/layer_fold.h"

namespace vramscope::analyze {
namespace {

std::map<std::string, Bytes> groups(const std::map<std::string, Bytes>& layers, const LayerFold& fold) {
  std::map<std::string, Bytes> out;
  for (const auto& [name, bytes] : layers) out[fold(name)] += bytes;
  return out;
}

double share_of_largest(const std::map<std::string, Bytes>& folded, std::size_t most) {
  std::vector<Bytes> sizes;
  Bytes all = 0, shown = 0;
  for (const auto& [name, bytes] : folded) {
    sizes.push_back(bytes);
    all += bytes;
  }
  std::ranges::sort(sizes, std::greater{});
  for (std::size_t i = 0; i < std::min(most, sizes.size()); ++i) shown += sizes[i];
  return static_cast<double>(shown) / static_cast<double>(all);
}

TEST(LayerFold, LeavesAFewLayersAlone) {
  const std::map<std::string, Bytes> layers = {{"conv2d", 7}, {"conv2d_1", 5}, {"encoder/layer_1/query", 3}, {"", 1}};
  EXPECT_EQ(groups(layers, LayerFold::for_largest(layers, 11)), layers);
}

TEST(LayerFold, MakesRangesOfNumberedNeighbours) {
  std::map<std::string, Bytes> layers = {{"(optimizer)", 40}};
  for (int i = 0; i < 50; ++i)
    for (const char* part : {"query", "key", "value", "output"}) layers[fmt::format("encoder/layer_{}/{}", i, part)] = 10;
  const auto folded = groups(layers, LayerFold::for_largest(layers, 11));
  EXPECT_EQ(folded.at("encoder/layer_5 to 9"), 5U * 4U * 10U);
  EXPECT_EQ(folded.at("(optimizer)"), 40U);
  EXPECT_GE(share_of_largest(folded, 11), 0.9);
}

TEST(LayerFold, PrefersPathsOverRanges) {
  std::map<std::string, Bytes> layers;
  for (int i = 0; i < 8; ++i)
    for (const char* part : {"query", "key", "value"}) layers[fmt::format("blocks.{}.{}", i, part)] = 10;
  const auto folded = groups(layers, LayerFold::for_largest(layers, 11));
  EXPECT_EQ(folded.at("blocks.3.*"), 30U);
}

TEST(LayerFold, FoldsFlatNamesAndSurvivesAnyName) {
  std::map<std::string, Bytes> layers;
  for (int i = 0; i < 200; ++i) layers[fmt::format("dense_{}", i)] = 1;
  EXPECT_GE(share_of_largest(groups(layers, LayerFold::for_largest(layers, 11)), 11), 0.9);
  layers.clear();
  for (int i = 0; i < 300; ++i)
    layers[std::string(static_cast<std::size_t>(i % 7), '/') + fmt::format("{}99999999999999999999", i)] = 1;
  const auto fold = LayerFold::for_largest(layers, 11);
  for (const auto& [name, bytes] : layers) EXPECT_FALSE(fold(name).empty());
}

}  // namespace
}  // namespace vramscope::analyze
