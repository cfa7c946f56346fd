// Phases: the same figures as a replay, whether there are a few or very many.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "analyze/work.h"
#include "replay.h"
#include "trace_test.h"

namespace vramscope::test {
namespace {

using namespace analyze;
namespace fs = std::filesystem;

class Phases : public ::testing::TestWithParam<int> {
 protected:
  const TracePath path_;
};

// Blocks that come and go while scopes begin and end, across one another.
void write_overlapping(const fs::path& path, int scopes) {
  std::mt19937_64 random(5);
  tracegen::Maker maker = tracegen::Maker::create(path, {}).value();
  std::vector<tracegen::Handle> live;
  std::vector<int> open;
  int begun = 0;
  while (begun < scopes || random() % 100 != 0) {
    const std::uint64_t draw = random() % 100;
    if (draw < 10 && begun < scopes) {
      maker.mark(trace::MarkKind::scope, trace::MarkEdge::begin, "s" + std::to_string(begun));
      open.push_back(begun++);
    } else if (draw < 18 && !open.empty()) {
      std::swap(open[random() % open.size()], open.back());
      maker.mark(trace::MarkKind::scope, trace::MarkEdge::end, "s" + std::to_string(open.back()));
      open.pop_back();
    } else if (draw < 60 || live.empty()) {
      live.push_back(maker.alloc({"Relu", "output", 256 + random() % 4096}).value());
    } else {
      std::swap(live[random() % live.size()], live.back());
      maker.free(live.back());
      live.pop_back();
    }
  }
  ASSERT_TRUE(maker.finish());
}

TEST_P(Phases, AreWhatAReplayGives) {
  ASSERT_NO_FATAL_FAILURE(write_overlapping(path_, GetParam()));
  const test::Replay replay(trace::Reader::open(path_).value());
  std::vector<std::uint64_t> total(1, 0);
  for (const std::int64_t change : replay.change) total.push_back(total.back() + static_cast<std::uint64_t>(change));
  const std::vector<Phase> phases = opened(path_).phases();
  ASSERT_EQ(phases.size(), static_cast<std::size_t>(GetParam()));
  for (const Phase& phase : phases) {
    const auto highest = std::max_element(total.begin() + static_cast<std::ptrdiff_t>(phase.begin),
                                          total.begin() + static_cast<std::ptrdiff_t>(phase.end) + 1);
    EXPECT_EQ(phase.peak, *highest) << phase.name;
    EXPECT_EQ(phase.peak_at, static_cast<Moment>(highest - total.begin())) << phase.name;
    Bytes kept = 0, allocated = 0;
    std::uint64_t allocs = 0;
    for (const test::ReplayBlock& block : replay.blocks) {
      if (block.birth < phase.begin || block.birth >= phase.end) continue;
      allocated += block.granted;
      allocs += 1;
      if (replay.lives(block, phase.end)) kept += block.granted;
    }
    EXPECT_EQ(phase.growth_kept, kept) << phase.name;
    EXPECT_EQ(phase.allocated, allocated) << phase.name;
    EXPECT_EQ(phase.allocs, allocs) << phase.name;
  }
}

INSTANTIATE_TEST_SUITE_P(FewAndMany, Phases, ::testing::Values(1, 40, 64, 65, 700));

// Each scope ends while all blocks are live: a look at them for each would be millions of looks.
TEST(PhasesOfATrace, TakeWorkForEventsNotForBlocksTimesPhases) {
  const TracePath path;
  tracegen::Maker maker = tracegen::Maker::create(path, {}).value();
  for (int i = 0; i < 5000; ++i) maker.alloc({"Relu", "output", 256});
  for (int i = 0; i < 5000; ++i) {
    maker.mark(trace::MarkKind::scope, trace::MarkEdge::begin, "s");
    maker.mark(trace::MarkKind::scope, trace::MarkEdge::end, "s");
  }
  ASSERT_TRUE(maker.finish());
  const Engine engine = opened(path);
  const std::uint64_t before = work_of(engine);
  EXPECT_EQ(engine.phases().size(), 5000u);
  EXPECT_LT(work_of(engine) - before, 10u * engine.overview().events);
}

}  // namespace
}  // namespace vramscope::test
