#include "collect/write/live_set.h"

#include <gtest/gtest.h>

namespace vramscope::collect {
namespace {

LiveBlock block(std::uint64_t bytes) {
  LiveBlock made;
  made.granted = made.requested = bytes;
  return made;
}

TEST(LivePool, AFreeCanBeTakenBackAfterOthersFreed) {
  LivePool pool;
  pool.alloc(0x1000, block(10));
  pool.alloc(0x2000, block(20));
  pool.alloc(0x3000, block(30));
  pool.free(0x1000);
  pool.free(0x2000);
  pool.free(0x3000);
  ASSERT_NE(pool.cancel_free(0x1000), nullptr);
  ASSERT_NE(pool.cancel_free(0x3000), nullptr);
  EXPECT_EQ(pool.cancel_free(0x1000), nullptr);  // once
  EXPECT_EQ(pool.account().live, 40u);
  EXPECT_EQ(pool.account().frees, 1u);
  EXPECT_TRUE(pool.free(0x3000));
  EXPECT_EQ(pool.account().live, 10u);
}

TEST(LivePool, ManyFreesKeepTheRecentOnes) {
  LivePool pool;
  for (std::uint64_t i = 1; i <= 10000; ++i) {
    pool.alloc(i * 512, block(i));
    pool.free(i * 512);
  }
  EXPECT_EQ(pool.cancel_free(512), nullptr);
  ASSERT_NE(pool.cancel_free(9000 * 512), nullptr);
  EXPECT_EQ(pool.account().live, 9000u);
}

TEST(LivePool, ReservedBytesWithoutAnAddressAreNoHole) {
  LivePool pool;
  pool.region(0, 32 << 20, false);
  pool.region(0, 32 << 20, false);
  EXPECT_EQ(pool.account().regions, 64u << 20);
  EXPECT_EQ(pool.largest_free(), 0u);
  pool.region(0, 48 << 20, true);
  EXPECT_EQ(pool.account().regions, 16u << 20);
}

}  // namespace
}  // namespace vramscope::collect
