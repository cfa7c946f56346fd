// Steps that nobody told: equal to the steps that were run, or none with a reason; never another number.
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

}  // namespace
}  // namespace vramscope
