#include "whatif/forecast/forecast.h"

#include <gtest/gtest.h>

namespace vramscope::whatif {
namespace {

TEST(LineThrough, ClassesOfSizes) {
  EXPECT_EQ(line_through(8, 1000, 16, 1000).at(64), 1000u);
  EXPECT_EQ(line_through(8, 4096, 16, 8192).at(64), 32768u);
  EXPECT_EQ(line_through(8, 1080, 16, 1160).at(64), 1640u);
  EXPECT_FALSE(line_through(8, 1080, 16, 1160).uncertain);
  EXPECT_TRUE(line_through(8, 1000, 16, 900).uncertain);
  EXPECT_TRUE(line_through(8, 1000, 16, 9000).uncertain);
  EXPECT_EQ(line_through(8, 4096, 16, 8192).at(1e18), kLargestDevice);
}

std::vector<Request> program(const std::vector<std::pair<std::uint64_t, Bytes>>& allocs, std::uint32_t section = 0) {
  std::vector<Request> out;
  for (const auto& [key, bytes] : allocs) out.push_back({key, section, static_cast<std::uint32_t>(out.size()), bytes});
  return out;
}

std::vector<Bytes> at(const std::vector<Scaling>& scalings, double batch) {
  std::vector<Bytes> out;
  for (const Scaling& scaling : scalings) out.push_back(scaling.at(batch));
  return out;
}

TEST(Scalings, MatchPlacesOfTheProgram) {
  const auto small = program({{1, 100}, {2, 80}, {3, 500}}), large = program({{3, 500}, {1, 200}, {2, 160}});
  EXPECT_EQ(at(scalings({small, 8}, {large, 16}), 32), (std::vector<Bytes>{500, 400, 320}));
}

TEST(ParabolaThrough, AttentionThatIsStored) {
  const auto size = [](double t) { return SizeAt{t, static_cast<Bytes>(300 + 40 * t + 8 * t * t)}; };
  EXPECT_EQ(parabola_through(size(64), size(128), size(256)).at(1024), size(1024).bytes);
  EXPECT_EQ(parabola_through({64, 6400}, {128, 12800}, {256, 25600}).at(1024), 102400u);
  EXPECT_EQ(parabola_through({64, 500}, {128, 500}, {256, 500}).at(1024), 500u);
  EXPECT_TRUE(parabola_through({64, 1000}, {128, 9000}, {256, 9500}).uncertain);
}

TEST(Scalings, ThreeLengthsMatchSquaresToo) {
  // One key, one block that grows with the square and one with the length, in another order in the last recording.
  const auto small = program({{1, 100}, {1, 640}}), middle = program({{1, 400}, {1, 1280}}),
             large = program({{1, 2560}, {1, 1600}});
  EXPECT_EQ(at(scalings({small, 10}, {middle, 20}, {large, 40}), 80), (std::vector<Bytes>{5120, 6400}));
}

TEST(Scalings, ThreadsThatTookTurns) {
  // The same op twice, in the other order.
  const auto small = program({{1, 100}, {1, 4000}}), large = program({{1, 8000}, {1, 200}});
  EXPECT_EQ(at(scalings({small, 8}, {large, 16}), 32), (std::vector<Bytes>{16000, 400}));
}

TEST(Scalings, AWorkspaceWithoutACounterpartKeepsItsSize) {
  const auto small = program({{1, 100}, {1, 50}}), large = program({{1, 200}, {1, 7777}, {1, 50}});
  const auto found = scalings({small, 8}, {large, 16});
  EXPECT_EQ(at(found, 32), (std::vector<Bytes>{400, 7777, 50}));
  EXPECT_TRUE(found[1].uncertain);
  EXPECT_FALSE(found[2].uncertain);
}

TEST(Scalings, LaterStepsUseTheLastOneThatWasRecorded) {
  auto small = program({{1, 100}}, 0), steps = program({{1, 80}}, 1);
  small.insert(small.end(), steps.begin(), steps.end());
  const auto large = program({{1, 160}}, 5);
  EXPECT_EQ(at(scalings({small, 8}, {large, 16}), 32), (std::vector<Bytes>{320}));
}

TEST(Substituted, ChangesRequestsOnly) {
  const Events events{{160, 0, 0, What::alloc, 0}, {0, 0, 0, What::free, 0}};
  const Scaling scaling{0, 10, false};
  const Events out = substituted(events, {&scaling, 1}, 64);
  EXPECT_EQ(out[0].bytes, 640u);
  EXPECT_EQ(out[1].what, What::free);
}

}  // namespace
}  // namespace vramscope::whatif
