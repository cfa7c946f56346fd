#include "support/work_timer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

namespace vramscope::support {
namespace {

TEST(WorkTimer, WaitingIsNotWork) {
  const WorkTimer timer;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(timer.seconds(), 0.1);
}

TEST(WorkTimer, WorkIs) {
  const WorkTimer timer;
  const std::clock_t began = std::clock();
  while (std::clock() - began < CLOCKS_PER_SEC / 20) {
  }
  // Clocks of a virtual machine disagree by a little; a timer that counts no work disagrees by all of it.
  EXPECT_GT(timer.seconds(), 0.025);
}

TEST(WorkTimer, IsTheShorterOfElapsedAndProcessorTime) {
  EXPECT_EQ(WorkTimer::work({1.0, 0.25}), 0.25);  // waited for a busy machine
  EXPECT_EQ(WorkTimer::work({1.0, 1.75}), 1.0);   // several threads worked
}

}  // namespace
}  // namespace vramscope::support
