// What replays say about a failed request, against the same program with what they name. Its allocator is the generator's own.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analyze/api.h"
#include "trace_test.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using tracegen::Handle;
using tracegen::Maker;

// A training with shapes in a pool of 64 MiB; optimizer state comes with the first update. True if its three steps ran.
bool train_with(const TracePath& path, std::uint64_t batch, std::uint64_t state) {
  path.clear();
  Maker::Options options;
  options.pool.limit = options.pool.device = 64 * kMiB;
  options.pool.growth = false;
  Maker maker = Maker::create(path, options).value();
  const Handle kernel = maker.alloc({"sequential/dense/kernel", "output", 8 * kMiB}).value();
  maker.tag(kernel, trace::Category::parameter, "kernel", "dense");
  bool ok = true;
  for (int s = 1; ok && s <= 3; ++s) {
    maker.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", s);
    std::vector<Handle> made;
    for (const auto& [op, width] : {std::pair{"sequential/dense/Relu", 16384}, std::pair{"sequential/dense_1/Relu", 24576},
                                    std::pair{"gradient_tape/sequential/dense_1/MatMul", 24576},
                                    std::pair{"gradient_tape/sequential/dense/MatMul", 16384}}) {
      const auto bytes = batch * static_cast<std::uint64_t>(width) * 4;
      auto block = maker.alloc(
          {fmt::format("StatefulPartitionedCall/{}", op), "output", bytes, 0, 1, fmt::format("[{},{}]", batch, width)});
      ok = ok && block.has_value();
      if (!ok) break;
      made.push_back(*block);
    }
    for (const Handle& h : made) maker.free(h);
    if (ok && s == 1 && state > 0) {
      auto block = maker.alloc({"adam/momentum", "output", state});
      ok = block.has_value();
      if (ok) maker.tag(*block, trace::Category::optimizer_state, "momentum", "dense");
    }
    if (ok) maker.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", s);
  }
  EXPECT_TRUE(maker.finish());
  return ok;
}

// In the first step only what was requested so far is known; in the second one a whole step is.
TEST(OomReplay, NamesTheLargestBatch) {
  const TracePath path;
  struct Case {
    std::uint64_t batch, state, step;
  };
  for (const auto& [batch, state, step] : {Case{300, 16 * kMiB, 1}, Case{120, 24 * kMiB, 2}}) {
    SCOPED_TRACE(batch);
    ASSERT_FALSE(train_with(path, batch, state));
    const Ooms ooms = opened(path).ooms();
    const OomEvent& e = ooms.events.back();
    ASSERT_EQ(e.step, static_cast<std::int64_t>(step));
    ASSERT_TRUE(e.replay.has_value());
    EXPECT_EQ(e.replay->batch, batch);
    EXPECT_EQ(e.replay->whole_step, step > 1);
    ASSERT_TRUE(e.replay->largest.has_value()) << e.replay->sentence;
    const std::uint64_t largest = *e.replay->largest;
    EXPECT_NE(ooms.advice.find(fmt::format("a batch of at most {} instead of {}", largest, batch)), std::string::npos)
        << ooms.advice;
    if (step > 1) {
      EXPECT_TRUE(train_with(path, largest, state)) << largest;
    }
    EXPECT_FALSE(train_with(path, largest + largest / 20 + 1, state)) << largest;
  }
}

// One activation without a shape, of which more or less fits: the batch is not known.
TEST(OomReplay, ShareIsTheSameInSentenceAndAdvice) {
  const TracePath path;
  std::set<std::uint64_t> shares;
  for (std::uint64_t mib = 90; mib < 110; ++mib) {
    path.clear();
    Maker::Options options;
    options.pool.limit = options.pool.device = 64 * kMiB;
    options.pool.growth = false;
    Maker maker = Maker::create(path, options).value();
    const Handle kernel = maker.alloc({"sequential/dense/kernel", "output", 8 * kMiB}).value();
    maker.tag(kernel, trace::Category::parameter, "kernel", "dense");
    maker.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", 1);
    ASSERT_FALSE(maker.alloc({"StatefulPartitionedCall/sequential/dense/Relu", "output", mib * kMiB}).has_value());
    ASSERT_TRUE(maker.finish());
    const Ooms ooms = opened(path).ooms();
    const std::optional<OomReplay>& replay = ooms.events.back().replay;
    ASSERT_TRUE(replay.has_value() && replay->largest_share.has_value()) << mib;
    const auto share = static_cast<std::uint64_t>(std::llround(100 * *replay->largest_share));
    EXPECT_NE(replay->sentence.find(fmt::format(" {} % of the batch", share)), std::string::npos) << replay->sentence;
    EXPECT_NE(ooms.advice.find(fmt::format("at most {} % of this one", share)), std::string::npos) << ooms.advice;
    shares.insert(share);
  }
  EXPECT_TRUE(shares.contains(57) || shares.contains(58)) << "which are a little less in binary";
}

// Tensors of unknown purpose, as of a program that trains nothing: a batch is not what to change.
TEST(OomReplay, WithoutABatchThereIsNoShareOfOne) {
  const TracePath path;
  path.clear();
  Maker::Options options;
  options.pool.limit = options.pool.device = 64 * kMiB;
  options.pool.growth = false;
  Maker maker = Maker::create(path, options).value();
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(maker.alloc({"Fill", "output", 10 * kMiB}).has_value());
  ASSERT_FALSE(maker.alloc({"Fill", "output", 10 * kMiB}).has_value());
  ASSERT_TRUE(maker.finish());
  const OomEvent e = opened(path).ooms().events.back();
  EXPECT_TRUE(!e.replay || !e.replay->largest_share);
  EXPECT_TRUE(!e.replay || !e.replay->sentence.contains("batch")) << e.replay->sentence;
}

}  // namespace
}  // namespace vramscope::test
