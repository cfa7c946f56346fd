#include "whatif/bounds/bounds.h"

#include <gtest/gtest.h>

#include "whatif/replay/replay.h"
#include "whatif/replay/test_events.h"

namespace vramscope::whatif {
namespace {

TEST(BoundsOf, ByHand) {
  Script s;
  const auto a = s.alloc(1000, 0);
  s.alloc(100, 1);
  s.free(a);
  s.alloc(600, 0);
  const Bounds bounds = bounds_of(s.events, 512);
  EXPECT_EQ(bounds.requested, 1100u);
  EXPECT_EQ(bounds.live, 1536u);        // 1024 + 512, then 512 + 1024
  EXPECT_EQ(bounds.per_stream, 1536u);  // 1024 and 512
  EXPECT_EQ(bounds.packed, 1536u);
}

TEST(BoundsOf, PagesAreSharedBySmallBlocksOnly) {
  constexpr Bytes KiB = 1024, MiB = 1024 * KiB;
  Script s;
  for (int i = 0; i < 5; ++i) s.alloc(512 * KiB);  // 2 pages
  s.free(s.alloc(5 * MiB));                        // 3 pages
  s.alloc(MiB + 1);                                // 1 page
  EXPECT_EQ(bounds_of(s.events, 512).paged, 10 * MiB);
}

TEST(BoundsOf, StreamsThatPeakAtDifferentTimesCostMore) {
  Script s;
  s.free(s.alloc(1024, 0));
  s.free(s.alloc(1024, 1));
  EXPECT_EQ(bounds_of(s.events, 512).live, 1024u);
  EXPECT_EQ(bounds_of(s.events, 512).per_stream, 2048u);
}

TEST(Pack, NothingOverlapsAndTheBoundsHold) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Events events = random_program(seed, 800);
    const auto blocks = intervals_of(events, 512);
    const Packing packing = pack(blocks);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_LE(packing.offsets[i] + blocks[i].bytes, packing.height);
      for (std::size_t j = 0; j < i; ++j) {
        const bool in_time = blocks[i].from < blocks[j].to && blocks[j].from < blocks[i].to;
        const bool in_space = packing.offsets[i] < packing.offsets[j] + blocks[j].bytes &&
                              packing.offsets[j] < packing.offsets[i] + blocks[i].bytes;
        ASSERT_FALSE(in_time && in_space) << i << " and " << j;
      }
    }
    const Bounds bounds = bounds_of(events, 512);
    EXPECT_LE(bounds.requested, bounds.live);
    EXPECT_LE(bounds.live, packing.height);
    EXPECT_LE(static_cast<double>(packing.height), 1.1 * static_cast<double>(bounds.live));
    EXPECT_LE(bounds.live, replay(events, Scenario{}).counters.reserved_peak);
  }
}

}  // namespace
}  // namespace vramscope::whatif
