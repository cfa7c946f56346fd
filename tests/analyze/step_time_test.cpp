// Time of layers and ops in a step: what the program waited where, and nothing twice.
#include <gtest/gtest.h>

#include <map>

#include "analyze/api.h"
#include "trace_test.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using Kind = trace::MarkKind;
using Edge = trace::MarkEdge;

class StepTimes : public TraceTest {
 protected:
  StepTimes() : maker(new_trace(options())) {}

  static tracegen::Maker::Options options() {
    tracegen::Maker::Options out;
    out.us_per_event = 0;  // only what a test waits
    return out;
  }
  void allocate(const std::string& op, std::uint64_t us) {
    blocks_.push_back(maker.alloc({op, "output", 1024}).value());
    maker.wait(us);
  }
  template <typename Body>
  void steps(Body body) {
    for (int i = 1; i <= 12; ++i) {
      maker.mark(Kind::step, Edge::begin, "train", i);
      body();
      for (const auto& block : blocks_) maker.free(block);
      blocks_.clear();
      maker.mark(Kind::step, Edge::end, "train", i);
      maker.wait(1000);  // between steps: nobody's
    }
  }
  Layers layers(const char* at = "steady") {
    maker.finish().value();
    return opened().layers(at, -1, "").value();
  }
  static std::map<std::string, std::uint64_t> times(const Layers& layers) {
    std::map<std::string, std::uint64_t> out;
    for (const LayerRow& row : layers.rows) out[row.name] = row.time_us.value_or(~0ull);
    return out;
  }
  static std::map<std::pair<std::string, std::string>, std::uint64_t> ops(const Layers& layers) {
    std::map<std::pair<std::string, std::string>, std::uint64_t> out;
    for (const OpTime& op : layers.ops) out[{op.op, op.layer}] = op.time_us;
    return out;
  }

  tracegen::Maker maker;

 private:
  std::vector<tracegen::Handle> blocks_;
};

TEST_F(StepTimes, InEagerModeCallsOfLayersHaveTheirTime) {
  steps([&] {
    maker.mark(Kind::layer, Edge::begin, "block");
    maker.wait(20);
    maker.mark(Kind::layer, Edge::begin, "block/dense");
    maker.wait(100);
    allocate("MatMul", 300);
    maker.mark(Kind::layer, Edge::end, "block/dense");
    maker.wait(5);
    allocate("Relu", 60);
    maker.mark(Kind::layer, Edge::end, "block");
    maker.wait(50);
    allocate("Mul", 40);
  });
  const Layers found = layers();
  EXPECT_EQ(times(found), (std::map<std::string, std::uint64_t>{{"block", 85}, {"block/dense", 400}, {"", 90}}));
  EXPECT_EQ(ops(found), (std::map<std::pair<std::string, std::string>, std::uint64_t>{
                            {{"MatMul", "block/dense"}, 300}, {{"Relu", "block"}, 60}, {{"Mul", ""}, 40}}));
  EXPECT_EQ(found.ops.front().op, "MatMul");
}

TEST_F(StepTimes, InAGraphTheLastAllocationOwnsTheTime) {
  maker.op_source("model/dense/MatMul", "train.py", 3, "dense");
  maker.op_source("model/dense_1/Relu", "train.py", 4, "dense_1");
  steps([&] {
    maker.wait(10);
    allocate("model/dense/MatMul", 200);
    allocate("model/dense_1/Relu", 70);
    allocate("model/dense/MatMul", 30);
  });
  const Layers found = layers();
  const auto time = times(found);
  EXPECT_EQ(time.at("dense"), 230u);
  EXPECT_EQ(time.at("dense_1"), 70u);
  EXPECT_EQ(ops(found).at({"model/dense_1/Relu", "dense_1"}), 70u);
}

TEST_F(StepTimes, WithoutStepsThereIsNone) {
  allocate("MatMul", 10);
  const Layers found = layers("end");
  EXPECT_TRUE(found.ops.empty());
  for (const LayerRow& row : found.rows) EXPECT_FALSE(row.time_us);
}

}  // namespace
}  // namespace vramscope::test
