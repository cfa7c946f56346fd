// The categories of blocks in whole traces: what is reported about an op, what one op of a backward pass keeps for itself.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "analyze/api.h"
#include "trace_test.h"
#include "training.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using trace::MarkEdge;
using trace::MarkKind;
using tracegen::Handle;
using tracegen::Maker;

class CategoriesTest : public TraceTest {
 protected:
  // By op and region, at the peak.
  std::map<std::pair<std::string, std::string>, std::string> at_peak(Maker& m) {
    EXPECT_TRUE(m.finish());
    const Live live = opened().live({.at = "peak", .by = {}, .where = {}, .limit = 0}).value();
    std::map<std::pair<std::string, std::string>, std::string> out;
    for (const Block& block : live.blocks) out[{block.op, block.region}] = block.category;
    return out;
  }
};

TEST_F(CategoriesTest, ScratchOfAnOpThatMakesAGradientIsNoGradient) {
  constexpr const char* kOp = "gradient_tape/net/conv/Conv2DBackpropFilter";
  Maker m = new_trace();
  m.report(trace::VariableOp{m.string(kOp), trace::OpRole::gradient, trace::Category::gradient, m.string("conv/kernel")});
  m.mark(MarkKind::step, MarkEdge::begin, "train", 1);
  const Handle result = m.alloc({kOp, "output", 4096}).value(), trial = m.alloc({kOp, "", 1u << 20}).value(),
               scratch = m.alloc({kOp, "temp", 8192}).value();
  const Handle other = m.alloc({"gradient_tape/net/conv/Conv2DBackpropInput", "output", 4096}).value();
  for (const Handle& h : {result, trial, scratch, other}) m.free(h);
  m.mark(MarkKind::step, MarkEdge::end, "train", 1);
  auto said = at_peak(m);
  EXPECT_EQ((said[{kOp, "output"}]), "gradients");
  EXPECT_EQ((said[{kOp, ""}]), "workspace");
  EXPECT_EQ((said[{kOp, "temp"}]), "temporaries");
  EXPECT_EQ((said[{"gradient_tape/net/conv/Conv2DBackpropInput", "output"}]), "activation gradients");
}

// On a GPU, Conv2DBackpropInput requests its result as scratch.
TEST_F(CategoriesTest, ScratchOfTheBackwardPassThatTheNextOpFindsAliveWasAResult) {
  Maker m = new_trace();
  m.mark(MarkKind::step, MarkEdge::begin, "train", 1);
  const Handle trial = m.alloc({"Conv2DBackpropInput", "temp", 1024}).value();
  m.free(trial);
  const Handle result = m.alloc({"Conv2DBackpropInput", "temp", 4096}).value();
  const Handle other = m.alloc({"ReluGrad", "output", 4096}).value(), scratch = m.alloc({"ReluGrad", "temp", 8192}).value();
  for (const Handle& h : {scratch, result, other}) m.free(h);
  m.mark(MarkKind::step, MarkEdge::end, "train", 1);
  auto said = at_peak(m);
  EXPECT_EQ((said[{"Conv2DBackpropInput", "temp"}]), "activation gradients");
  EXPECT_EQ((said[{"ReluGrad", "temp"}]), "temporaries");
}

// An executor starts backward ops early: when a block is freed says less than who reads it.
TEST_F(CategoriesTest, WhatTheBackwardPassReadsIsAnActivationWheneverItIsFreed) {
  Maker m = new_trace();
  m.report(trace::VariableOp{m.string("net/dense/Relu"), trace::OpRole::saved, trace::Category::activation, {}});
  m.mark(MarkKind::step, MarkEdge::begin, "train", 1);
  const Handle kept = m.alloc({"net/dense/Relu", "output", 4096}).value(),
               passing = m.alloc({"net/dense/MatMul", "output", 4096}).value();
  m.free(kept);
  m.free(passing);
  m.free(m.alloc({"gradient_tape/net/dense/ReluGrad", "output", 4096}).value());
  m.mark(MarkKind::step, MarkEdge::end, "train", 1);
  auto said = at_peak(m);
  EXPECT_EQ((said[{"net/dense/Relu", "output"}]), "activations");
  EXPECT_EQ((said[{"net/dense/MatMul", "output"}]), "temporaries");
}

// TensorFlow calls every variable "Variable" that the program does not name.
TEST_F(CategoriesTest, VariablesOfOneNameAreSeveral) {
  Maker m = new_trace();
  const Handle first = m.alloc({"AddV2", "output", 4096}).value(), second = m.alloc({"Fill", "output", 1024}).value();
  for (int step = 1; step <= 4; ++step) {
    m.mark(MarkKind::step, MarkEdge::begin, "train", step);
    m.free(m.alloc({"MatMul", "output", 8192}).value());
    m.mark(MarkKind::step, MarkEdge::end, "train", step);
    for (const Handle& variable : {first, second}) m.tag(variable, trace::Category::parameter, "Variable", "");
  }
  auto said = at_peak(m);
  EXPECT_EQ((said[{"AddV2", "output"}]), "parameters");
  EXPECT_EQ((said[{"Fill", "output"}]), "parameters");
}

// An object is smaller than its memory: behind its address, other things lie, with tags of their own.
TEST_F(CategoriesTest, ATagBehindAnObjectIsNotOfTheObject) {
  for (const bool of_objects : {false, true}) {
    Maker m = new_trace({.framework = trace::Framework::jax, .of_objects = of_objects});
    const Handle weights = m.alloc({"jit_init", "result", 1u << 20}).value(),
                 kept = m.alloc({"jit_step", "result", 1u << 20}).value();
    m.tag(weights, trace::Category::parameter, "params['w']", "w");
    m.tag({kept.address + 4096, 0, 1024}, trace::Category::input, "batch", "");
    auto said = at_peak(m);
    EXPECT_EQ((said[{"jit_init", "result"}]), "parameters");
    EXPECT_EQ((said[{"jit_step", "result"}]), of_objects ? "unknown" : "inputs");
  }
}

TEST_F(CategoriesTest, AnEvaluationRunsTheSameOpsAndKeepsNothing) {
  Maker m = new_trace();
  m.report(trace::VariableOp{m.string("net/dense/Relu"), trace::OpRole::saved, trace::Category::activation, {}});
  m.mark(MarkKind::phase, MarkEdge::begin, "evaluate");
  m.free(m.alloc({"net/dense/Relu", "output", 4096}).value());
  m.mark(MarkKind::phase, MarkEdge::end, "evaluate");
  EXPECT_NE((at_peak(m)[{"net/dense/Relu", "output"}]), "activations");
}

}  // namespace
}  // namespace vramscope::test
