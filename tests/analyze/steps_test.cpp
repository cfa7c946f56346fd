// Steps, told and found: equal to the steps that were run, or none with a reason; never another number.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "analyze/api.h"
#include "training.h"

namespace vramscope {
namespace {

using namespace analyze;
namespace fs = std::filesystem;
using tracegen::Training;

class FoundSteps : public testing::Test {
 protected:
  FoundSteps() { program.marks = program.tags = false, program.steps = 40; }
  ~FoundSteps() override { fs::remove(path_); }

  Engine engine() {
    fs::remove(path_);
    tracegen::write_training(path_, program).value();
    OpenOptions options;
    options.keep_index = false;
    return Engine::open(path_, options).value();
  }
  Steps steps() { return engine().steps(); }

  Training program;

 private:
  fs::path path_ = fs::temp_directory_path() / ("vs-steps-" + std::to_string(::getpid()) + ".vram");
};

TEST_F(FoundSteps, AreTheStepsThatWereRun) {
  Steps found = steps();
  EXPECT_EQ(found.source, "found");
  EXPECT_EQ(found.steps.size(), 40u);
  EXPECT_EQ(found.steps.front().kind, "train");
}

// Three rounds of folding constants are no steps, though these ops lie outside of the loop and repeat.
TEST_F(FoundSteps, FoldedConstantsAreNoSteps) {
  program.in_loop = true;
  EXPECT_EQ(steps().source, "none");  // in so small a model they are too many to tell them from the rest
  program.layers = 16;
  Steps found = steps();
  EXPECT_EQ(found.source, "found") << found.sentence;
  EXPECT_EQ(found.steps.size(), 40u);
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
  EXPECT_NE(found.why.find("gradients were taken 30 times"), std::string::npos) << found.why;
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

// Steps that were told, by marks as the Python side makes them.
class ToldSteps : public testing::Test {
 protected:
  using Kind = trace::MarkKind;
  using Edge = trace::MarkEdge;
  ToldSteps() : maker_(tracegen::Maker::create(path_, {}).value()) {}
  ~ToldSteps() override { fs::remove(path_); }

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
    OpenOptions options;
    options.keep_index = false;
    return Engine::open(path_, options).value();
  }
  Steps steps() { return open().steps(); }

 private:
  fs::path path_ = fs::temp_directory_path() / ("vs-told-" + std::to_string(::getpid()) + ".vram");
  tracegen::Maker maker_;
};

TEST_F(ToldSteps, TheFirstCallOfEachTrainingFunctionCounts) {
  for (int i = 0; i < 30; ++i) {
    i == 0 ? call(Kind::function, "critic", "step") : call(Kind::step, "critic");
    call(Kind::step, "critic");
    i == 0 ? call(Kind::function, "generator", "step") : call(Kind::step, "generator");
    call(Kind::function, "metrics");
  }
  EXPECT_EQ(steps().steps.size(), 90u);
}

TEST_F(ToldSteps, GradientsAreNoStepWhereAnOptimizerIsAppliedLater) {
  call(Kind::function, "gradients_of", "gradients");
  call(Kind::step, "gradients_of", "gradients");
  for (int i = 1; i <= 15; ++i) mark(Kind::step, Edge::instant, "optimizer", i);
  EXPECT_EQ(steps().steps.size(), 15u);
}

TEST_F(ToldSteps, GradientsBeginTheStepOfTheFunctionThatAppliesThem) {
  for (int i = 0; i < 15; ++i) {
    i == 0 ? call(Kind::function, "gradients_of", "gradients") : call(Kind::step, "gradients_of", "gradients");
    call(Kind::step, "gradients_of", "gradients");
    i == 0 ? call(Kind::function, "apply", "step") : call(Kind::step, "apply");
  }
  Steps told = steps();
  ASSERT_EQ(told.steps.size(), 15u);
  for (const Step& s : told.steps) EXPECT_EQ(s.allocs, 5u) << "two calls for gradients, and the beginning of the third";
}

TEST_F(ToldSteps, GradientsAreAStepWhereNoOptimizerIsKnown) {
  call(Kind::function, "gradients_of", "gradients");
  for (int i = 0; i < 9; ++i) call(Kind::step, "gradients_of", "gradients");
  EXPECT_EQ(steps().steps.size(), 10u);
}

// Two models with an optimizer each: who applied the gradients is told behind an @.
TEST_F(ToldSteps, OptimizersThatTakeTurnsMakeOneIteration) {
  for (int i = 0; i < 10; ++i) {
    call(i == 0 ? Kind::function : Kind::step, "critic", "step@1");
    call(i == 0 ? Kind::function : Kind::step, "generator", "step@2");
  }
  Steps told = steps();
  ASSERT_EQ(told.steps.size(), 10u);
  for (const Step& s : told.steps) EXPECT_EQ(s.allocs, 3u) << s.number;  // one with each mark but the last
}

TEST_F(ToldSteps, ASecondOptimizerNowAndThenMakesNoIterations) {
  for (int i = 0; i < 20; ++i) {
    mark(Kind::step, Edge::instant, "optimizer", i, "@1");
    if (i % 5 == 4) mark(Kind::step, Edge::instant, "optimizer", i, "@2");
  }
  EXPECT_EQ(steps().steps.size(), 20u);
}

TEST_F(ToldSteps, OptimizersThatComeAfterEachOtherHaveTheirOwnSteps) {
  for (int i = 0; i < 20; ++i) call(Kind::step, "train", i < 10 ? "step@1" : "step@2");
  EXPECT_EQ(steps().steps.size(), 20u);
}

TEST_F(ToldSteps, VariablesWrittenByHandEndAStep) {
  for (int i = 0; i < 8; ++i) {
    call(i == 0 ? Kind::function : Kind::step, "gradients_of", "gradients");
    call(Kind::step, "gradients_of", "gradients");
    by_hand(i);
  }
  EXPECT_EQ(steps().steps.size(), 8u);
}

TEST_F(ToldSteps, VariablesWrittenByHandAreNoStepsBesideAnOptimizer) {
  for (int i = 0; i < 5; ++i) {
    call(Kind::step, "train", "step@1");
    by_hand(i);
  }
  EXPECT_EQ(steps().steps.size(), 5u);
}

TEST_F(ToldSteps, AnExecutionRunsAsManyBatchesAsItsNumbersSay) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    mark(Kind::epoch, Edge::begin, "epoch");
    execution(1, 8);
    execution(9, 11);
    mark(Kind::epoch, Edge::end, "epoch");
  }
  Steps told = steps();
  std::int64_t batches = 0;
  for (const Step& s : told.steps) batches += s.batches;
  EXPECT_EQ(told.steps.size(), 6u);
  EXPECT_EQ(batches, 33);
  EXPECT_NE(told.sentence.find("each runs 3 to 8 batches"), std::string::npos) << told.sentence;
}

// PyTorch: a step begins again behind what ran without gradients. Each mark comes with one allocation.
TEST_F(ToldSteps, WhatRunsSeldomBetweenStepsIsNoPartOfThem) {
  for (int i = 0; i < 10; ++i) {
    mark(Kind::step, Edge::begin, "train", i);
    if (i == 5) mark(Kind::step, Edge::begin, "train", i, "again");
    mark(Kind::step, Edge::end, "train", i);
  }
  Steps told = steps();
  ASSERT_EQ(told.steps.size(), 10u);
  for (const Step& s : told.steps) EXPECT_EQ(s.allocs, 1u) << s.number;
}

TEST_F(ToldSteps, WhatRunsInMostStepsIsPartOfThem) {
  for (int i = 0; i < 10; ++i) {
    mark(Kind::step, Edge::begin, "train", i);
    if (i != 5) mark(Kind::step, Edge::begin, "train", i, "again");
    mark(Kind::step, Edge::end, "train", i);
  }
  Steps told = steps();
  ASSERT_EQ(told.steps.size(), 10u);
  for (const Step& s : told.steps) EXPECT_EQ(s.allocs, s.number == 6 ? 1u : 2u) << s.number;
}

TEST_F(ToldSteps, AnUnfinishedStepIsNotSteady) {
  for (int i = 0; i < 5; ++i) call(Kind::step, "train");
  mark(Kind::step, Edge::begin, "train");
  Steps told = steps();
  ASSERT_EQ(told.steps.size(), 6u);
  EXPECT_TRUE(told.steps.back().outlier);
  EXPECT_EQ(told.steady_last, 4u);
  EXPECT_NE(told.sentence.find("Steps 2 to 5 are alike"), std::string::npos) << told.sentence;
}

TEST_F(ToldSteps, ALoopOfTheGraphIsNotCalledOneUpdate) {
  call(Kind::function, "epoch", "loop");
  for (int i = 0; i < 4; ++i) call(Kind::step, "epoch", "loop");
  Steps told = steps();
  EXPECT_EQ(told.steps.size(), 5u);
  EXPECT_EQ(told.steps.back().batches, 0);
  EXPECT_NE(told.sentence.find("how many updates that makes is not told"), std::string::npos) << told.sentence;
}

// Evaluation counts its own steps: its third one is not the third step of training.
TEST_F(ToldSteps, ANumberAloneMeansTraining) {
  for (int i = 1; i <= 6; ++i) call(i % 2 != 0 ? Kind::step : Kind::batch, i % 2 != 0 ? "train" : "test");
  Engine told = open();
  ASSERT_EQ(told.steps().steps.size(), 6u);
  for (const Step& s : told.steps().steps) {
    LiveRequest request;
    request.at = "moment:" + std::to_string(s.end);
    EXPECT_EQ(told.live(request).value().step, s.kind == "train" ? s.number : 0) << s.kind << " " << s.number;
  }
  const Engine* runs[] = {&told, &told};
  const std::string names[] = {"a", "b"};
  EXPECT_EQ(compare(runs, names).value().sides[0].steps, 3u);
  EXPECT_NE(told.resolve("step:4").error().message.find("3 steps"), std::string::npos);
}

}  // namespace
}  // namespace vramscope
