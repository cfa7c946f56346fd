// Where threads find segments: free ones, grown ones, overwritten ones, none.
#include "record/segments.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "record/recorder_test.h"
#include "record/setup.h"
#include "record/state.h"
#include "spool/free_list.h"

namespace {
timespec g_growth_takes{};
}

// The recorder's disk: as slow as a test wants it.
extern "C" int fallocate(int file, int mode, off_t offset, off_t bytes) {
  nanosleep(&g_growth_takes, nullptr);
  return static_cast<int>(syscall(SYS_fallocate, file, mode, offset, bytes));
}

namespace vramscope::record {
namespace {

class SegmentsTest : public RecorderTest {};

TEST_F(SegmentsTest, AtTheLimitTheOldestGoesAndIsCounted) {
  constexpr std::uint64_t kEvents = 100'000;
  EXPECT_EQ(run(
                [] {
                  const auto pool = test_pool();
                  for (std::uint64_t i = 0; i < kEvents; ++i) allocate(pool, i);
                },
                spool::kExtentBytes),
            0);
  const auto found = spools();
  ASSERT_EQ(found.size(), 1u);
  const auto records = found[0].records();
  EXPECT_GT(found[0].lost(spool::LossKind::overwritten), 0u);
  // What is there and what was counted as lost is everything (definitions have no number and may be among the lost).
  const auto kept = numbers(records).size();
  EXPECT_GE(kept + found[0].lost(spool::LossKind::overwritten), kEvents);
  EXPECT_LE(kept + found[0].lost(spool::LossKind::overwritten), kEvents + 100);
  EXPECT_EQ(*numbers(records).rbegin(), kEvents);
  EXPECT_EQ(found[0].header().pools[0].allocs.load(), kEvents);
}

// Counts work, not time: how many segments were looked at.
TEST_F(SegmentsTest, FindingAFreeSegmentLooksAtOne) {
  constexpr std::uint64_t kThreads = 100;
  EXPECT_EQ(run([] {
              const auto pool = test_pool();
              const std::uint64_t before = segment_probes();
              for (std::uint64_t t = 0; t < kThreads; ++t) std::thread([=] { allocate(pool, t); }).join();
              _exit(segment_probes() - before == kThreads ? 0 : 1);
            }),
            0);
}

TEST_F(SegmentsTest, AnEventThatFindsNoSegmentLooksAtNone) {
  constexpr std::uint64_t kEvents = 1000;
  EXPECT_EQ(run(
                [] {
                  const auto pool = test_pool();  // this thread has one of the sixteen
                  for (std::uint64_t t = 1; t < spool::kExtentSegments; ++t) std::thread([=] { allocate(pool, t); }).join();
                  std::thread([=] {
                    allocate(pool, 0);  // the first search in vain looks at all of them
                    const std::uint64_t before = segment_probes();
                    for (std::uint64_t i = 0; i < kEvents; ++i) allocate(pool, i);
                    if (segment_probes() != before) _exit(1);
                  }).join();
                },
                spool::kExtentBytes),
            0);
  const auto found = spools();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].lost(spool::LossKind::no_segment), kEvents + 1);
}

TEST_F(SegmentsTest, ASegmentThatIsGivenBackIsFoundAgain) {
  EXPECT_EQ(run(
                [] {
                  const auto pool = test_pool();
                  for (std::uint64_t t = 1; t < spool::kExtentSegments; ++t) std::thread([=] { allocate(pool, t); }).join();
                  std::thread([=] {
                    allocate(pool, 0);
                    // As the collector does once it has read the segment of a thread that is gone.
                    spool::Header& header = *g_control.load()->header;
                    auto& segment =
                        *reinterpret_cast<spool::SegmentHeader*>(g_control.load()->segments + 3 * spool::kSegmentBytes);
                    segment.state.store(spool::SegmentState::reading);
                    spool::push_free(header, segment, 3);
                    for (std::uint64_t i = 0; i < 10; ++i) allocate(pool, i);
                    const bool taken = segment.state.load() == spool::SegmentState::owned && segment.records == 10;
                    _exit(taken && header.lost[static_cast<std::size_t>(spool::LossKind::no_segment)].load() == 1 ? 0 : 1);
                  }).join();
                },
                spool::kExtentBytes),
            0);
}

TEST_F(SegmentsTest, ThreadsThatPassSegmentsRoundLoseNothing) {
  constexpr std::uint64_t kThreads = 8, kRounds = 20'000;
  EXPECT_EQ(run([] {
              test_pool();
              spool::Header& header = *g_control.load()->header;
              const auto at = [](std::uint32_t index) {
                return reinterpret_cast<spool::SegmentHeader*>(g_control.load()->segments + index * spool::kSegmentBytes);
              };
              std::vector<std::thread> threads;
              for (std::uint64_t t = 0; t < kThreads; ++t)
                threads.emplace_back([&, t] {
                  std::uint64_t probes = 0;
                  for (std::uint64_t i = 0; i < kRounds; ++i) {
                    spool::SegmentHeader* segment = spool::pop_free(header, spool::kExtentSegments, at, probes);
                    if (segment == nullptr) _exit(2);
                    segment->thread = static_cast<std::uint32_t>(t);
                    const auto index =
                        static_cast<std::uint32_t>((reinterpret_cast<std::byte*>(segment) - g_control.load()->segments) /
                                                   static_cast<std::ptrdiff_t>(spool::kSegmentBytes));
                    if (segment->thread != t) _exit(3);  // somebody else has it as well
                    spool::push_free(header, *segment, index);
                  }
                });
              for (auto& each : threads) each.join();
              std::uint64_t probes = 0;
              std::uint32_t left = 0;
              while (spool::pop_free(header, spool::kExtentSegments, at, probes) != nullptr) ++left;
              _exit(left == spool::kExtentSegments - 1 ? 0 : 4);  // one is this thread's
            }),
            0);
}

TEST_F(SegmentsTest, ASlowGrowthIsWaitedFor) {
  constexpr std::uint64_t kThreads = 8, kEvents = 20'000;
  EXPECT_EQ(run([] {
              const auto pool = test_pool();
              g_growth_takes.tv_nsec = 20'000'000;  // a thread that loses its core in the middle takes as long
              std::vector<std::thread> threads;
              for (std::uint64_t t = 0; t < kThreads; ++t)
                threads.emplace_back([=] {
                  for (std::uint64_t i = 0; i < kEvents; ++i) allocate(pool, t << 32 | i);
                });
              for (auto& each : threads) each.join();
            }),
            0);
  const auto found = spools();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].lost(spool::LossKind::overwritten), 0u);
  EXPECT_EQ(numbers(found[0].records()).size(), kThreads * kEvents);
}

// As somebody can do who may rename the spool folder.
TEST_F(SegmentsTest, AnotherFileInThePlaceOfTheSpoolIsLeftAlone) {
  const fs::path other = folder_ / "other";
  std::ofstream(other) << "thesis";
  EXPECT_EQ(run([&] {
              const auto pool = test_pool();
              allocate(pool, 1);
              const fs::path spool = folder_ / (std::to_string(getpid()) + "-0.spool");
              fs::rename(spool, folder_ / "moved");
              fs::create_symlink(other, spool);
              for (std::uint64_t i = 2; i < 100'000; ++i) allocate(pool, i);  // more than the first part of a spool
            }),
            0);
  EXPECT_EQ(fs::file_size(other), 6u);
  std::string text;
  std::getline(std::ifstream(other) >> std::ws, text);
  EXPECT_EQ(text, "thesis");
}

TEST_F(SegmentsTest, AFileThatTookTheNumberOfTheLockStaysOpen) {
  EXPECT_EQ(run([&] {
              allocate(test_pool(), 1);
              const int mine = ::open((folder_ / "mine").c_str(), O_RDWR | O_CREAT, 0600);
              constexpr int kFirst = 400, kLast = 450;
              for (int number = kFirst; number < kLast; ++number)
                if (dup2(mine, number) != number) _exit(2);
              end_recording();
              for (int number = kFirst; number < kLast; ++number)
                if (fcntl(number, F_GETFD) < 0) _exit(3);
            }),
            0);
}

}  // namespace
}  // namespace vramscope::record
