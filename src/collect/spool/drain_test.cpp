#include "collect/spool/drain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collect/spool/fake_recorder.h"

namespace vramscope::collect {
namespace {

using spool::SegmentState;
using testing::ElementsAre;

class DrainTest : public testing::Test {
 protected:
  // Numbers of the records that one pass takes.
  std::vector<std::uint64_t> pass() {
    std::vector<std::uint64_t> taken;
    drain_.pass(spool_, [&](std::uint32_t thread, const spool::RecordHead& head, std::span<const std::byte>) {
      taken.push_back(head.seq);
      thread_ = thread;
    });
    return taken;
  }

  TestFolder folder_;
  FakeRecorder recorder_{folder_.path(), 4'000'000};
  SpoolFile spool_ = SpoolFile::open(recorder_.path()).value();
  Drain drain_;
  std::uint32_t thread_ = 0;
};

TEST_F(DrainTest, ReadsAnOwnedSegmentInPlaceAndOnlyOnce) {
  recorder_.take(3, 77);
  EXPECT_TRUE(pass().empty());
  recorder_.alloc(3, 1, 0x100, 256);
  recorder_.alloc(3, 2, 0x200, 256);
  EXPECT_THAT(pass(), ElementsAre(1, 2));
  EXPECT_EQ(thread_, 77u);
  EXPECT_TRUE(pass().empty());
  recorder_.alloc(3, 3, 0x300, 256);
  EXPECT_THAT(pass(), ElementsAre(3));
  EXPECT_EQ(recorder_.segment(3).state, SegmentState::owned);
}

TEST_F(DrainTest, ARecordThatIsNotPublishedIsAbsent) {
  recorder_.take(0, 1);
  const auto record = FakeRecorder::alloc_record(1, 0x100, 256);
  recorder_.append(0, &record, sizeof record, false);
  EXPECT_TRUE(pass().empty());
}

TEST_F(DrainTest, ASealedSegmentGoesBackOnlyWhenItsEventsAreStored) {
  recorder_.take(0, 1);
  for (std::uint64_t seq : {4u, 9u}) recorder_.alloc(0, seq, seq << 8, 256);
  recorder_.seal(0);
  EXPECT_THAT(pass(), ElementsAre(4, 9));
  EXPECT_EQ(recorder_.segment(0).state, SegmentState::reading);
  drain_.give_back(spool_, 9);
  EXPECT_EQ(recorder_.segment(0).state, SegmentState::reading) << "9 itself is not below 9";
  drain_.give_back(spool_, 10);
  EXPECT_EQ(recorder_.segment(0).state, SegmentState::free);
  EXPECT_EQ(drain_.held(), 0u);
}

TEST_F(DrainTest, ARecycledSegmentIsReadFromItsStart) {
  recorder_.take(0, 1);
  recorder_.alloc(0, 1, 0x100, 256);
  recorder_.seal(0);
  pass();
  drain_.give_back(spool_, 2);
  EXPECT_TRUE(pass().empty());
  recorder_.take(0, 2);
  recorder_.alloc(0, 2, 0x100, 256);
  EXPECT_THAT(pass(), ElementsAre(2));
  EXPECT_EQ(thread_, 2u);
}

TEST_F(DrainTest, AnOverwrittenSegmentIsReadAsItsNewSelf) {
  recorder_.take(0, 1);
  for (std::uint64_t seq = 1; seq <= 10; ++seq) recorder_.alloc(0, seq, seq << 8, 256);
  EXPECT_EQ(pass().size(), 10u);
  recorder_.seal(0);
  recorder_.take(0, 2);  // stolen before we came
  recorder_.alloc(0, 11, 0x100, 256);
  EXPECT_THAT(pass(), ElementsAre(11));
}

TEST_F(DrainTest, BetweenEmptyingAndTheNewGenerationNothingIsReadTwice) {
  recorder_.take(0, 1);
  recorder_.alloc(0, 1, 0x100, 256);
  pass();
  recorder_.segment(0).committed = sizeof(spool::SegmentHeader);
  EXPECT_TRUE(pass().empty());
  ++recorder_.segment(0).generation;
  EXPECT_TRUE(pass().empty());
  recorder_.alloc(0, 2, 0x100, 256);
  EXPECT_THAT(pass(), ElementsAre(2));
}

TEST_F(DrainTest, SegmentsOfDeadThreadsComeBack) {
  recorder_.take(0, 1);
  recorder_.take(1, 2);
  recorder_.take(2, 3);  // has published nothing: whose it is, is not certain yet
  recorder_.alloc(0, 1, 0x100, 256);
  recorder_.alloc(1, 2, 0x200, 256);
  pass();
  EXPECT_EQ(drain_.owned(), 3u);
  drain_.reclaim(spool_, [](std::uint32_t tid) { return tid == 2; });
  drain_.give_back(spool_, 3);
  EXPECT_EQ(recorder_.segment(0).state, SegmentState::free);
  EXPECT_EQ(recorder_.segment(1).state, SegmentState::owned);
  EXPECT_EQ(recorder_.segment(2).state, SegmentState::owned);
}

TEST_F(DrainTest, WhatAnotherCollectorHeldIsReadAgain) {
  recorder_.take(0, 1);
  recorder_.alloc(0, 1, 0x100, 256);
  recorder_.segment(0).state = SegmentState::reading;
  EXPECT_THAT(pass(), ElementsAre(1));
  EXPECT_TRUE(pass().empty());
}

TEST_F(DrainTest, NonsenseIsSkippedAndCounted) {
  recorder_.take(0, 1);
  recorder_.alloc(0, 1, 0x100, 256);
  auto record = FakeRecorder::alloc_record(2, 0x200, 256);
  record.head.slots = 0;
  recorder_.append(0, &record, sizeof record);
  EXPECT_THAT(pass(), ElementsAre(1));
  EXPECT_EQ(drain_.damaged(), 1u);
  recorder_.take(1, 1);
  recorder_.segment(1).committed = 1u << 30;
  EXPECT_TRUE(pass().empty());
}

TEST_F(DrainTest, TheHeaderCannotMakeUsMapBeyondTheFile) {
  recorder_.header().segment_count = 1u << 20;
  EXPECT_EQ(spool_.update(), spool::kExtentSegments);
}

}  // namespace
}  // namespace vramscope::collect
