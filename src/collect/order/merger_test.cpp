#include "collect/order/merger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace vramscope::collect {
namespace {

using testing::ElementsAre;

Event event(std::uint64_t seq) {
  Event e;
  e.head.seq = seq;
  return e;
}

struct Collected {
  std::vector<std::uint64_t> order;
  std::vector<std::uint64_t> late;
  Deliver sink() {
    return [this](const Event& e, bool is_late, bool) {
      (is_late ? late : order).push_back(e.head.seq);
      return true;
    };
  }
};

TEST(Merger, AnyOrderInIsNumberOrderOut) {
  Merger merger;
  Collected out;
  std::vector<std::uint64_t> numbers(20'000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i + 1;
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(7));
  for (auto n : numbers) merger.add(event(n), 20'001);
  merger.release(1, out.sink());
  ASSERT_EQ(out.order.size(), 20'000u);
  EXPECT_TRUE(std::is_sorted(out.order.begin(), out.order.end()));
  EXPECT_EQ(merger.next(), 20'001u);
  EXPECT_EQ(merger.waiting(), 0u);
}

TEST(Merger, AGapHoldsTheOthersForABoundedTimeOnly) {
  Merger merger({.wait_us = 1000, .events = 1024});
  Collected out;
  merger.add(event(1), 9);
  merger.add(event(3), 9);
  merger.release(100, out.sink());
  EXPECT_THAT(out.order, ElementsAre(1));
  merger.release(1099, out.sink());
  EXPECT_THAT(out.order, ElementsAre(1));
  merger.release(1100, out.sink());
  EXPECT_THAT(out.order, ElementsAre(1, 3));
  EXPECT_EQ(merger.missing(), 1u);
}

TEST(Merger, ALateEventIsDeliveredOnceAndNoLongerMissing) {
  Merger merger({.wait_us = 10, .events = 1024});
  Collected out;
  for (std::uint64_t n : {1u, 5u}) merger.add(event(n), 9);
  merger.release(1, out.sink());
  merger.release(20, out.sink());
  EXPECT_EQ(merger.missing(), 3u);
  merger.add(event(3), 9);
  merger.add(event(3), 9);
  merger.release(21, out.sink());
  EXPECT_THAT(out.late, ElementsAre(3));
  EXPECT_EQ(merger.missing(), 2u);
  EXPECT_EQ(merger.late(), 1u);
  EXPECT_EQ(merger.refused(), 1u);
}

TEST(Merger, MemoryIsBoundedByForcingTheGap) {
  Merger merger({.wait_us = 1'000'000'000, .events = 16});
  Collected out;
  for (std::uint64_t n = 2; n <= 40; ++n) merger.add(event(n), 41);
  merger.release(1, out.sink());
  EXPECT_EQ(out.order.size(), 39u);
  EXPECT_TRUE(std::is_sorted(out.order.begin(), out.order.end()));
  EXPECT_EQ(merger.missing(), 1u);
}

TEST(Merger, ManyGapsBeyondTheWindowCostNoMoreThanTheirNumber) {
  Merger merger({.wait_us = 1'000'000'000, .events = 1024});
  Collected out;
  constexpr std::uint64_t kEvents = 400'000;  // quadratic work would take minutes
  for (std::uint64_t n = kEvents; n > 0; --n)
    if (n % 3 != 0) merger.add(event(n), kEvents + 1);
  merger.release(1, out.sink());
  merger.finish(kEvents + 1, out.sink());
  EXPECT_EQ(out.order.size(), kEvents - kEvents / 3);
  EXPECT_TRUE(std::is_sorted(out.order.begin(), out.order.end()));
  EXPECT_EQ(merger.missing(), kEvents / 3);
}

TEST(Merger, NumbersNobodyDrewAreDamage) {
  Merger merger;
  Collected out;
  merger.add(event(0), 5);
  merger.add(event(5), 5);
  merger.add(event(~0ull), 5);
  merger.release(1, out.sink());
  EXPECT_TRUE(out.order.empty());
  EXPECT_EQ(merger.refused(), 3u);
  EXPECT_EQ(merger.next(), 1u);
}

TEST(Merger, AtTheEndEverythingComesAndTheTailIsMissing) {
  Merger merger;
  Collected out;
  for (std::uint64_t n : {2u, 4u, 5u}) merger.add(event(n), 9);
  merger.finish(9, out.sink());
  EXPECT_THAT(out.order, ElementsAre(2, 4, 5));
  EXPECT_EQ(merger.missing(), 5u);  // 1, 3, 6, 7, 8
}

TEST(Merger, AnEventWaitsForWhatItNeedsUntilTheLastCall) {
  Merger merger({.wait_us = 50, .events = 1024});
  bool known = false;
  std::vector<std::pair<std::uint64_t, bool>> out;
  const Deliver sink = [&](const Event& e, bool, bool last_call) {
    if (e.head.seq == 2 && !known && !last_call) return false;
    out.emplace_back(e.head.seq, last_call);
    return true;
  };
  for (std::uint64_t n : {1u, 2u, 3u}) merger.add(event(n), 4);
  merger.release(1, sink);
  EXPECT_EQ(out.size(), 1u);
  merger.release(60, sink);
  EXPECT_THAT(out, ElementsAre(std::pair(1u, false), std::pair(2u, true), std::pair(3u, false)));
}

TEST(Merger, WhatIsStoredIsNeitherDeliveredNorMissed) {
  Merger merger;
  Collected out;
  SeqRanges stored;
  for (std::uint64_t n : {4u, 1u, 2u, 2u}) stored.add(n);
  stored.sort();
  merger.set_stored(stored);
  for (std::uint64_t n : {2u, 3u, 6u}) merger.add(event(n), 8);
  merger.finish(8, out.sink());
  EXPECT_THAT(out.order, ElementsAre(3, 6));
  EXPECT_EQ(merger.missing(), 2u);  // 5, 7
}

// A damaged header or record names any number. Nothing may be done once for each number below it.
TEST(Merger, HugeNumbersCostNoMoreThanSmallOnes) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;
  Merger merger;
  Collected out;
  SeqRanges stored;
  stored.add(kHuge / 2);
  stored.sort();
  merger.set_stored(stored);
  for (std::uint64_t n : {std::uint64_t{2}, kHuge - 1, kHuge - 2}) merger.add(event(n), kHuge);
  merger.finish(kHuge, out.sink());
  EXPECT_THAT(out.order, ElementsAre(2, kHuge - 2, kHuge - 1));
  EXPECT_EQ(merger.missing(), kHuge - 1 - 4);
}

TEST(Merger, EventsFarApartDoNotEachCostAWalkThroughTheWindow) {
  Merger merger;
  Collected out;
  constexpr std::uint64_t kApart = (1 << 19) + 7;
  constexpr std::uint64_t kEvents = 200'000;  // 10^11 steps if each walked
  for (std::uint64_t n = 1; n <= kEvents; ++n) merger.add(event(n * kApart), kEvents * kApart + 1);
  merger.finish(kEvents * kApart + 1, out.sink());
  EXPECT_EQ(out.order.size(), kEvents);
  EXPECT_TRUE(std::is_sorted(out.order.begin(), out.order.end()));
  EXPECT_EQ(merger.missing(), kEvents * kApart - kEvents);
}

TEST(SeqRanges, AnswersAsASetWould) {
  SeqRanges ranges;
  std::vector<bool> set(400);
  std::mt19937 draw(3);
  for (int i = 0; i < 150; ++i) {
    const std::uint64_t n = draw() % 300;
    ranges.add(n);
    set[n] = true;
  }
  ranges.sort();
  for (std::uint64_t n = 0; n < 300; ++n) {
    EXPECT_EQ(ranges.contains(n), set[n]) << n;
    const auto at = set.begin() + static_cast<std::ptrdiff_t>(n);
    EXPECT_EQ(ranges.first_outside(n), static_cast<std::uint64_t>(std::find(at, set.end(), false) - set.begin())) << n;
    const auto inside = std::find(at, set.end(), true);
    EXPECT_EQ(ranges.first_inside(n), inside == set.end() ? SeqRanges::kNone : static_cast<std::uint64_t>(inside - set.begin()));
  }
}

}  // namespace
}  // namespace vramscope::collect
