#include "serve/tree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace vramscope::serve {

namespace {

using analyze::By;

analyze::Group group(std::vector<std::string> keys, analyze::Bytes bytes) {
  analyze::Group out;
  out.keys = std::move(keys);
  out.bytes = bytes;
  out.count = 1;
  return out;
}

TEST(Tree, SumsAndSorts) {
  const auto nodes =
      tree_of({group({"activations", "conv"}, 10), group({"temporaries", "conv"}, 50), group({"activations", "dense"}, 30)},
              {By::category, By::layer});
  ASSERT_EQ(nodes.size(), 5U);
  EXPECT_EQ(nodes[0].name, "temporaries");
  EXPECT_EQ(nodes[2].name, "activations");
  EXPECT_EQ(nodes[2].bytes, 40);
  EXPECT_EQ(nodes[3].name, "dense");
  EXPECT_EQ(nodes[3].parent, 2);
  EXPECT_EQ(nodes[4].category, "activations");
}

TEST(Tree, KeepsTheLargestAndSumsTheRest) {
  std::vector<analyze::Group> groups;
  for (analyze::Bytes i = 1; i <= 100; ++i) groups.push_back(group({"unknown", fmt::format("op{}", i)}, i));
  const auto nodes = tree_of(groups, {By::category, By::op});
  // 31 * 32 / 2 = 496 is the largest sum of the smallest that is at most a tenth of 5,050.
  EXPECT_EQ(nodes.size(), 1U + 69U + 1U);
  EXPECT_EQ(nodes.back().name, "31 more");
  EXPECT_EQ(nodes.back().bytes, 496);
  EXPECT_TRUE(nodes.back().rest);
  double sum = 0;
  for (const auto& node : nodes)
    if (node.depth == 1) sum += node.bytes;
  EXPECT_EQ(sum, nodes[0].bytes);
}

}  // namespace

}  // namespace vramscope::serve
