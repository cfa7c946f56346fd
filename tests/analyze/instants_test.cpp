// An instant written as text is the same instant again, whatever happens at the same time.
#include <gtest/gtest.h>

#include "analyze/api.h"
#include "analyze/query/instant_text.h"
#include "trace_test.h"
#include "training.h"

namespace vramscope::analyze {
namespace {

class Instants : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Instants, ComeBackFromTheirText) {
  tracegen::Training program;
  program.steps = 6;
  program.evaluate_every = 3;
  program.maker.us_per_event = GetParam();
  const test::TracePath path;
  const auto truth = tracegen::write_training(path, program);
  ASSERT_TRUE(truth) << truth.error().message;
  const auto engine = Engine::open(path, {.keep_index = false});
  ASSERT_TRUE(engine) << engine.error().message;
  const auto end = engine->resolve("end");
  ASSERT_TRUE(end);
  std::size_t in_steps = 0, shared = 0;
  for (Moment at = 0; at <= *end; ++at) {
    const std::string text = instant_text(*engine, at);
    if (text.starts_with("step:")) ++in_steps;
    if (text.contains('#')) ++shared;
    const auto back = engine->resolve(text);
    ASSERT_TRUE(back) << text << ": " << back.error().message;
    ASSERT_EQ(*back, at) << text;
  }
  EXPECT_GT(in_steps, *end / 2);
  EXPECT_EQ(shared > 0, GetParam() == 0);  // with 0 us per event, all of a step share one time
}
INSTANTIATE_TEST_SUITE_P(MicrosecondsPerEvent, Instants, testing::Values(0, 1, 3));

TEST(Instants, BeyondTheEventsOfAMicrosecondAreRejected) {
  const test::TracePath path;
  ASSERT_TRUE(tracegen::write_training(path, tracegen::Training{}));
  const auto engine = Engine::open(path, {.keep_index = false});
  ASSERT_TRUE(engine);
  for (const char* text : {"step:2+0.100ms#99", "0.000030s#0", "0.000030s#x", "0.000030s#"}) {
    const auto at = engine->resolve(text);
    ASSERT_FALSE(at) << text;
    EXPECT_NE(at.error().message.find(text), std::string::npos) << at.error().message;
  }
}

}  // namespace
}  // namespace vramscope::analyze
