#include "support/once.h"

#include <gtest/gtest.h>

#include <new>
#include <thread>
#include <vector>

namespace vramscope::support {
namespace {

TEST(Once, runs_once_and_everybody_sees_it) {
  Once once;
  int value = 0, runs = 0;
  std::vector<int> seen(8);
  std::vector<std::thread> threads;
  for (int& mine : seen)
    threads.emplace_back([&] {
      once.call([&] { value = 7, ++runs; });
      mine = value;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(seen, std::vector<int>(8, 7));
}

TEST(Once, an_exception_reaches_the_caller_and_the_next_one_tries_again) {
  Once once;
  EXPECT_THROW(once.call([] { throw std::bad_alloc(); }), std::bad_alloc);
  int runs = 0;
  once.call([&] { ++runs; });
  once.call([&] { ++runs; });
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace vramscope::support
