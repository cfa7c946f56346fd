// One step with another program: what is live is known, because the test allocates it.
#include "analyze/whatif/step_whatif.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "analyze/api.h"
#include "trace_test.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using tracegen::Handle;
using tracegen::Maker;
constexpr std::uint64_t kWeights = 4 * kMiB, kActivations = 8 * kMiB;

class StepWhatifTest : public TraceTest {
 protected:
  void SetUp() override {
    Maker m = new_trace();
    m.tag(m.alloc({"sequential/dense/kernel", "output", kWeights}).value(), trace::Category::parameter, "kernel", "dense");
    for (int s = 1; s <= 8; ++s) {
      m.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", s);
      const Handle result =
          m.alloc({"StatefulPartitionedCall/sequential/dense/Relu", "output", kActivations, 0, 1, "[8,262144]"}).value();
      m.free(result);
      m.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", s);
    }
    ASSERT_TRUE(m.finish());
    engine_.emplace(opened());
  }

  WhatifStep with_optimizer(const std::string& name) {
    StepWhatifRequest request;
    request.optimizer = name;
    return StepWhatif::of(*engine_).value().answer(request).value();
  }

  std::optional<Engine> engine_;
};

// Plain gradient descent was recorded: the state of another optimizer is there when a steady step begins.
TEST_F(StepWhatifTest, StateThatWasNotRecordedIsLiveThroughTheStep) {
  const WhatifStep plain = with_optimizer("");
  EXPECT_EQ(plain.live, kWeights + kActivations);
  EXPECT_EQ(with_optimizer("momentum").live, plain.live + kWeights);
  EXPECT_EQ(with_optimizer("adam").live, plain.live + 2 * kWeights);
  EXPECT_EQ(with_optimizer("adam").live_before, plain.live);
}

}  // namespace
}  // namespace vramscope::test
