#include "support/work_timer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace vramscope::support {
namespace {

TEST(WorkTimer, WaitingIsNotWork) {
  const WorkTimer timer;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(timer.seconds(), 0.1);
}

TEST(WorkTimer, WorkIs) {
  const auto began = std::chrono::steady_clock::now();  // before the timer: work is never more than the time around it
  const WorkTimer timer;
  volatile double sum = 0;
  while (timer.seconds() < 0.05) sum = sum + 1;
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace vramscope::support
