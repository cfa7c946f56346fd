// Steps, reported and inferred: equal to the steps that were run, or none with a reason; never another number.
#include <gtest/gtest.h>

#include "analyze/api.h"
#include "trace_test.h"
#include "training.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using tracegen::Training;

class FoundSteps : public TraceTest {
 protected:
  FoundSteps() {
    program.marks = program.tags = false;
    program.steps = 40;
  }

  Engine engine() {
    path_.clear();
    tracegen::write_training(path_, program).value();
    return opened();
  }
  Steps steps() { return engine().steps(); }

  Training program;
};

TEST_F(FoundSteps, AreTheStepsThatWereRun) {
  Steps found = steps();
  EXPECT_EQ(found.source, "inferred");
  EXPECT_EQ(found.steps.size(), 40u);
  EXPECT_EQ(found.steps.front().kind, "train");
}

// Three rounds of constant folding are not steps, although these ops are outside of the loop and repeat.
TEST_F(FoundSteps, FoldedConstantsAreNoSteps) {
  program.in_loop = true;
  EXPECT_EQ(steps().source, "none");  // in such a small model there are too many of them to distinguish them from the rest
  program.layers = 16;
  Steps found = steps();
  EXPECT_EQ(found.source, "inferred") << found.sentence;
  EXPECT_EQ(found.steps.size(), 40u);
}

// PyTorch without an optimizer reports its passes and no steps.
TEST(StepsOfPasses, OneForEachBackwardPass) {
  const TracePath path;
  auto steps_of = [&](int passes) {
    tracegen::Maker m = tracegen::Maker::create(path, {}).value();
    auto phase = [&](const char* name) {
      m.mark(trace::MarkKind::phase, trace::MarkEdge::begin, name);
      m.free(m.alloc({.op = "0/Linear", .region = name, .bytes = 4096}).value());
      m.mark(trace::MarkKind::phase, trace::MarkEdge::end, name);
    };
    for (int i = 0; i < passes; ++i) {
      phase("input");
      phase("forward");
      phase("backward");
    }
    phase("forward");  // an evaluation behind the training
    EXPECT_TRUE(m.finish());
    Steps out = opened(path).steps();
    path.clear();
    return out;
  };
  const Steps found = steps_of(12);
  EXPECT_EQ(found.source, "inferred");
  EXPECT_EQ(found.steps.size(), 12u);
  EXPECT_EQ(found.steps.front().kind, "train");
  EXPECT_EQ(steps_of(2).source, "none");
}

// Functions instead of modules: only backward passes are marked. A step that began and never ended does not count beside them.
TEST(StepsOfPasses, WithoutModulesAndBesideAStepThatNeverEnded) {
  const TracePath path;
  for (const bool modules : {false, true}) {
    tracegen::Maker m = tracegen::Maker::create(path, {}).value();
    if (modules) m.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", 1);
    for (int i = 0; i < 12; ++i)
      for (const char* phase : {"forward", "backward"}) {
        const bool marked = modules || std::string_view(phase) == "backward";
        if (marked) m.mark(trace::MarkKind::phase, trace::MarkEdge::begin, phase);
        m.free(m.alloc({.op = "0/Linear", .region = phase, .bytes = 4096}).value());
        if (marked) m.mark(trace::MarkKind::phase, trace::MarkEdge::end, phase);
      }
    ASSERT_TRUE(m.finish());
    const Steps found = opened(path).steps();
    EXPECT_EQ(found.steps.size(), 12u) << (modules ? "with modules" : "without modules");
    EXPECT_EQ(found.source, "inferred");
    path.clear();
  }
}

// A function is traced while another one is.
TEST(PhasesOfTheProgram, APhaseInsideItselfIsPartOfIt) {
  const TracePath path;
  tracegen::Maker m = tracegen::Maker::create(path, {}).value();
  const auto mark = [&](trace::MarkEdge edge) { m.mark(trace::MarkKind::phase, edge, "trace"); };
  for (int i = 0; i < 2; ++i) {
    mark(trace::MarkEdge::begin);
    mark(trace::MarkEdge::begin);
    m.free(m.alloc({.op = "Const", .bytes = 4096}).value());
    mark(trace::MarkEdge::end);
    mark(trace::MarkEdge::end);
  }
  ASSERT_TRUE(m.finish());
  std::uint64_t traced = 0, allocated = 0;
  for (const Phase& phase : opened(path).phases()) {
    traced += phase.name == "trace" ? 1u : 0u;
    if (phase.name == "trace") allocated += phase.allocated;
  }
  EXPECT_EQ(traced, 2u);
  EXPECT_EQ(allocated, 2 * 4096u);
}

TEST_F(FoundSteps, AccumulatedGradientsHaveTwoReadings) {
  program.update_every = 4;
  program.steps = 30;
  Steps found = steps();
  EXPECT_EQ(found.source, "none") << found.sentence;
  EXPECT_NE(found.why.find("others 30 times"), std::string::npos) << found.why;
}

// Functions that only take gradients, and an optimizer that is applied to them op by op: each time, or to two of them together.
TEST_F(FoundSteps, GradientsAreNoStepsWhereTheUpdateComesLater) {
  program.eager_update = true;
  program.steps = 30;
  EXPECT_EQ(steps().steps.size(), 30u);
  program.update_every = 2;
  Steps found = steps();
  EXPECT_EQ(found.source, "none") << found.sentence;
  EXPECT_NE(found.why.find("gradients were computed 30 times"), std::string::npos) << found.why;
}

TEST_F(FoundSteps, RunsOfAModelAreNoTraining) {
  program.trains = false;
  Engine runs = engine();
  Steps found = runs.steps();
  ASSERT_EQ(found.steps.size(), 40u) << found.sentence;
  EXPECT_EQ(found.steps.front().kind, "run");
  EXPECT_EQ(runs.overview().sentence.find("Training"), std::string::npos) << runs.overview().sentence;
}

TEST_F(FoundSteps, TheLastOneEndsBeforeTheProgramDoes) {
  program.teardown = true;
  Steps found = steps();
  ASSERT_EQ(found.steps.size(), 40u);
  EXPECT_EQ(found.steps.back().freed, found.steps[20].freed);
  EXPECT_EQ(found.steps.back().after, found.steps[20].after);
}

// Steps that were reported, by marks as the Python side makes them.
class ReportedSteps : public TraceTest {
 protected:
  using Kind = trace::MarkKind;
  using Edge = trace::MarkEdge;
  ReportedSteps() : maker_(new_trace()) {}

  void mark(Kind kind, Edge edge, const std::string& name, std::int64_t number = -1, const std::string& detail = {}) {
    maker_.mark(kind, edge, name, number, detail);
    if (auto block = maker_.alloc({"Relu", "output", 1024})) maker_.free(*block);
  }
  void call(Kind kind, const std::string& name, const std::string& detail = {}) {
    mark(kind, Edge::begin, name);
    mark(kind, Edge::end, name, -1, detail);
  }
  void by_hand(int number) {
    mark(Kind::step, Edge::instant, "optimizer", number, "@v1");
    mark(Kind::function, Edge::instant, "optimizer", -1, "more@v2");
  }
  void execution(std::int64_t first_batch, std::int64_t last_batch) {
    mark(Kind::batch, Edge::begin, "train", first_batch);
    call(Kind::step, "train");
    mark(Kind::batch, Edge::end, "train", last_batch);
  }
  Engine open() {
    maker_.finish().value();
    return opened();
  }
  Steps steps() { return open().steps(); }

 private:
  tracegen::Maker maker_;
};

TEST_F(ReportedSteps, TheFirstCallOfEachTrainingFunctionCounts) {
  for (int i = 0; i < 30; ++i) {
    i == 0 ? call(Kind::function, "critic", "step") : call(Kind::step, "critic");
    call(Kind::step, "critic");
    i == 0 ? call(Kind::function, "generator", "step") : call(Kind::step, "generator");
    call(Kind::function, "metrics");
  }
  EXPECT_EQ(steps().steps.size(), 90u);
}

TEST_F(ReportedSteps, GradientsAreNoStepWhereAnOptimizerIsAppliedLater) {
  call(Kind::function, "gradients_of", "gradients");
  call(Kind::step, "gradients_of", "gradients");
  for (int i = 1; i <= 15; ++i) mark(Kind::step, Edge::instant, "optimizer", i);
  EXPECT_EQ(steps().steps.size(), 15u);
}

TEST_F(ReportedSteps, GradientsBeginTheStepOfTheFunctionThatAppliesThem) {
  for (int i = 0; i < 15; ++i) {
    i == 0 ? call(Kind::function, "gradients_of", "gradients") : call(Kind::step, "gradients_of", "gradients");
    call(Kind::step, "gradients_of", "gradients");
    i == 0 ? call(Kind::function, "apply", "step") : call(Kind::step, "apply");
  }
  Steps reported = steps();
  ASSERT_EQ(reported.steps.size(), 15u);
  for (const Step& s : reported.steps) EXPECT_EQ(s.allocs, 5u) << "two calls for gradients, and the beginning of the third";
}

TEST_F(ReportedSteps, GradientsAreAStepWhereNoOptimizerIsKnown) {
  call(Kind::function, "gradients_of", "gradients");
  for (int i = 0; i < 9; ++i) call(Kind::step, "gradients_of", "gradients");
  EXPECT_EQ(steps().steps.size(), 10u);
}

// Two models with an optimizer each: who applied the gradients follows an @.
TEST_F(ReportedSteps, OptimizersThatTakeTurnsMakeOneIteration) {
  for (int i = 0; i < 10; ++i) {
    call(i == 0 ? Kind::function : Kind::step, "critic", "step@1");
    call(i == 0 ? Kind::function : Kind::step, "generator", "step@2");
  }
  Steps reported = steps();
  ASSERT_EQ(reported.steps.size(), 10u);
  for (const Step& s : reported.steps) EXPECT_EQ(s.allocs, 3u) << s.number;  // one with each mark but the last
}

TEST_F(ReportedSteps, ASecondOptimizerNowAndThenMakesNoIterations) {
  for (int i = 0; i < 20; ++i) {
    mark(Kind::step, Edge::instant, "optimizer", i, "@1");
    if (i % 5 == 4) mark(Kind::step, Edge::instant, "optimizer", i, "@2");
  }
  EXPECT_EQ(steps().steps.size(), 20u);
}

TEST_F(ReportedSteps, OptimizersThatComeAfterEachOtherHaveTheirOwnSteps) {
  for (int i = 0; i < 20; ++i) call(Kind::step, "train", i < 10 ? "step@1" : "step@2");
  EXPECT_EQ(steps().steps.size(), 20u);
}

TEST_F(ReportedSteps, VariablesWrittenByHandEndAStep) {
  for (int i = 0; i < 8; ++i) {
    call(i == 0 ? Kind::function : Kind::step, "gradients_of", "gradients");
    call(Kind::step, "gradients_of", "gradients");
    by_hand(i);
  }
  EXPECT_EQ(steps().steps.size(), 8u);
}

TEST_F(ReportedSteps, VariablesWrittenByHandAreNoStepsBesideAnOptimizer) {
  for (int i = 0; i < 5; ++i) {
    call(Kind::step, "train", "step@1");
    by_hand(i);
  }
  EXPECT_EQ(steps().steps.size(), 5u);
}

TEST_F(ReportedSteps, AnExecutionRunsAsManyBatchesAsItsNumbersSay) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    mark(Kind::epoch, Edge::begin, "epoch");
    execution(1, 8);
    execution(9, 11);
    mark(Kind::epoch, Edge::end, "epoch");
  }
  Steps reported = steps();
  std::int64_t batches = 0;
  for (const Step& s : reported.steps) batches += s.batches;
  EXPECT_EQ(reported.steps.size(), 6u);
  EXPECT_EQ(batches, 33);
  EXPECT_NE(reported.sentence.find("each runs 3 to 8 batches"), std::string::npos) << reported.sentence;
}

// PyTorch: a step begins again behind what ran without gradients. Each mark comes with one allocation.
TEST_F(ReportedSteps, WhatRunsSeldomBetweenStepsIsNoPartOfThem) {
  for (int i = 0; i < 10; ++i) {
    mark(Kind::step, Edge::begin, "train", i);
    if (i == 5) mark(Kind::step, Edge::begin, "train", i, "again");
    mark(Kind::step, Edge::end, "train", i);
  }
  Steps reported = steps();
  ASSERT_EQ(reported.steps.size(), 10u);
  for (const Step& s : reported.steps) EXPECT_EQ(s.allocs, 1u) << s.number;
}

TEST_F(ReportedSteps, WhatRunsInMostStepsIsPartOfThem) {
  for (int i = 0; i < 10; ++i) {
    mark(Kind::step, Edge::begin, "train", i);
    if (i != 5) mark(Kind::step, Edge::begin, "train", i, "again");
    mark(Kind::step, Edge::end, "train", i);
  }
  Steps reported = steps();
  ASSERT_EQ(reported.steps.size(), 10u);
  for (const Step& s : reported.steps) EXPECT_EQ(s.allocs, s.number == 6 ? 1u : 2u) << s.number;
}

TEST_F(ReportedSteps, AnUnfinishedStepIsNotSteady) {
  for (int i = 0; i < 5; ++i) call(Kind::step, "train");
  mark(Kind::step, Edge::begin, "train");
  Steps reported = steps();
  ASSERT_EQ(reported.steps.size(), 6u);
  EXPECT_TRUE(reported.steps.back().outlier);
  EXPECT_EQ(reported.steady_last, 4u);
  EXPECT_NE(reported.sentence.find("Steps 2 to 5 are alike"), std::string::npos) << reported.sentence;
}

TEST_F(ReportedSteps, ALoopOfTheGraphIsNotCalledOneUpdate) {
  call(Kind::function, "epoch", "loop");
  for (int i = 0; i < 4; ++i) call(Kind::step, "epoch", "loop");
  Steps reported = steps();
  EXPECT_EQ(reported.steps.size(), 5u);
  EXPECT_EQ(reported.steps.back().batches, 0);
  EXPECT_NE(reported.sentence.find("unknown number of updates"), std::string::npos) << reported.sentence;
}

// Evaluation counts its own steps: its third one is not the third step of training.
TEST_F(ReportedSteps, ANumberAloneMeansTraining) {
  for (int i = 1; i <= 6; ++i) call(i % 2 != 0 ? Kind::step : Kind::batch, i % 2 != 0 ? "train" : "test");
  Engine engine = open();
  ASSERT_EQ(engine.steps().steps.size(), 6u);
  for (const Step& s : engine.steps().steps) {
    LiveRequest request;
    request.at = "moment:" + std::to_string(s.end);
    EXPECT_EQ(engine.live(request).value().step, s.kind == "train" ? s.number : 0) << s.kind << " " << s.number;
  }
  const Engine* runs[] = {&engine, &engine};
  const std::string names[] = {"a", "b"};
  EXPECT_EQ(compare(runs, names).value().sides[0].steps, 3u);
  EXPECT_NE(engine.resolve("step:4").error().message.find("3 steps"), std::string::npos);
}

}  // namespace
}  // namespace vramscope::test
