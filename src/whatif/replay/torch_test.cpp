// Cases whose outcome follows from PyTorch's rules by hand.
#include "whatif/replay/torch.h"

#include <gtest/gtest.h>

#include "whatif/replay/replay.h"
#include "whatif/replay/test_events.h"

namespace vramscope::whatif {
namespace {

constexpr Bytes KiB = 1024, MiB = 1024 * KiB;

TorchSettings parsed(const char* text, int version = 211) { return TorchSettings::parse(text, version).value(); }

struct Replayed {
  explicit Replayed(const Events& events, const char* settings = "", const DeviceOptions& device = {.keep_calls = true},
                    int version = 211)
      : allocator(parsed(settings, version), device), outcome(replay(events, allocator, OnFailure::go_on)) {}
  TorchAllocator allocator;
  Outcome outcome;
};

std::vector<Bytes> sizes(const std::vector<DeviceCall>& calls) {
  std::vector<Bytes> out;
  for (const DeviceCall& call : calls) out.push_back(call.bytes);
  return out;
}

TEST(TorchRounding, Divisions) {
  EXPECT_EQ(parsed("").rounded(1), 512u);
  EXPECT_EQ(parsed("").rounded(513), 1024u);
  const TorchSettings four = parsed("roundup_power2_divisions:4");
  EXPECT_EQ(four.rounded(1200), 1536u);  // not above 512 x 4: in steps of 512
  EXPECT_EQ(four.rounded(2048), 2048u);
  EXPECT_EQ(four.rounded(1200 * KiB), 1280 * KiB);  // steps of 256 KiB between 1 and 2 MiB
  EXPECT_EQ(four.rounded(4 * MiB), 4 * MiB);        // a power of two stays
  const TorchSettings list = parsed("roundup_power2_divisions:[64:8,256:4,>:2]");
  EXPECT_EQ(list.rounded(65 * MiB), 72 * MiB);                // the bucket from 64 to 128 MiB: steps of 8
  EXPECT_EQ(list.rounded(3 * MiB + 1), 3 * MiB + 256 * KiB);  // the first value holds for everything below: 2 MiB / 8
  EXPECT_EQ(list.rounded(130 * MiB + 1), 130 * MiB + 512);    // between two keys: none
  EXPECT_EQ(list.rounded(257 * MiB), 320 * MiB);
  EXPECT_EQ(list.rounded(600 * MiB), 768 * MiB);  // above the last key: halves
}

TEST(TorchSettingsText, Errors) {
  EXPECT_FALSE(TorchSettings::parse("max_split_size_mb:19"));
  EXPECT_FALSE(TorchSettings::parse("expandable_segments:yes"));
  EXPECT_FALSE(TorchSettings::parse("roundup_power2_divisions:3"));
  EXPECT_FALSE(TorchSettings::parse("roundup_power2_divisions:[64:8"));
  EXPECT_FALSE(TorchSettings::parse("garbage_collection_threshold:1.5"));
  EXPECT_FALSE(TorchSettings::parse("garbage_collection_threshold:1"));
  EXPECT_FALSE(TorchSettings::parse("backend:cudaMalloc"));
  EXPECT_FALSE(TorchSettings::parse("expandable_segments"));
  EXPECT_FALSE(TorchSettings::parse("expandable_segment:True"));
  EXPECT_TRUE(TorchSettings::parse("of_a_newer_version:1", 211, TorchSettings::UnknownKeys::ignored));
  EXPECT_TRUE(TorchSettings::parse("backend:native, pinned_use_background_threads:True"));
  EXPECT_EQ(TorchSettings::version_of("2.12.1+cu128"), 212);
  EXPECT_EQ(TorchSettings::version_of("2.4"), 204);
  EXPECT_EQ(TorchSettings::version_of("git"), 211);
  EXPECT_EQ(parsed("large_segment_size_mb:64").oversize_slack, 64 * MiB);
}

TEST(Torch, SegmentsBySize) {
  Script s;
  s.alloc(1);
  s.alloc(MiB);             // fits beside it: 2 MiB
  s.alloc(MiB);             // does not
  s.alloc(MiB + 1);         // 20 MiB
  s.alloc(10 * MiB - 512);  // in the same: 1 MiB + 512 and 10 MiB - 512
  s.alloc(10 * MiB);        // a segment of its own
  s.alloc(10 * MiB + 1);    // 12 MiB
  Replayed r(s.events);
  EXPECT_EQ(sizes(r.allocator.device().calls()), (std::vector<Bytes>{2 * MiB, 2 * MiB, 20 * MiB, 10 * MiB, 12 * MiB}));
  EXPECT_EQ(r.outcome.counters.reserved_peak, 46 * MiB);
  // What is left of 12 MiB is above 1 MiB, so it is split off.
  EXPECT_EQ(r.outcome.counters.allocated, 512 + 2 * MiB + MiB + 512 + 10 * MiB - 512 + 10 * MiB + 10 * MiB + 512);
}

TEST(Torch, RemainderOfOneMebibyteIsHandedOut) {
  Script s;
  s.alloc(11 * MiB);  // 12 MiB, remainder of exactly 1 MiB
  Replayed r(s.events);
  EXPECT_EQ(r.outcome.counters.allocated, 12 * MiB);
}

TEST(Torch, StreamsDoNotShare) {
  Script s;
  const auto a = s.alloc(15 * MiB, 0);
  s.free(a);
  s.alloc(15 * MiB, 1);
  EXPECT_EQ(Replayed(s.events).outcome.counters.reserved_peak, 32 * MiB);
}

TEST(Torch, TiesGoToTheLowerAddressAndToTheOlderBlockOrSegmentFrom212) {
  // The second segment lies below the first.
  const std::vector<DeviceCall> calls{{false, 64 * MiB, 16 * MiB}, {false, 32 * MiB, 16 * MiB}};
  Script s;
  const auto first = s.alloc(16 * MiB), second = s.alloc(16 * MiB);
  s.free(second);
  s.free(first);
  const auto again = s.alloc(16 * MiB);
  const DeviceOptions device{.recorded = calls};
  EXPECT_EQ(Replayed(s.events, "", device, 211).allocator.address_of(again), 32 * MiB);
  EXPECT_EQ(Replayed(s.events, "", device, 212).allocator.address_of(again), 64 * MiB);
  EXPECT_EQ(Replayed(s.events, "", device, 213).allocator.address_of(again), 64 * MiB);
}

// Of a segment of 20 MiB, 4 MiB go to a, 4 to b, and so on. The block object of the remainder is the oldest one, and holds what
// was split off last: from 2.12 on it wins over blocks before it, unless all parts of a segment count as equally old.
TEST(Torch, PartsOfASegmentAreEquallyOldFrom213) {
  Script s;
  const auto a = s.alloc(4 * MiB), b = s.alloc(4 * MiB), c = s.alloc(4 * MiB);
  s.alloc(4 * MiB);
  const auto e = s.alloc(4 * MiB);
  s.free(a);
  s.free(c);
  s.free(e);
  const auto again = s.alloc(4 * MiB);
  const auto place = [&](int version) {
    const Replayed r(s.events, "", {}, version);
    return (r.allocator.address_of(again) + 4 * MiB - r.allocator.address_of(b)) / MiB;
  };
  EXPECT_EQ(place(211), 0u);
  EXPECT_EQ(place(212), 16u);
  EXPECT_EQ(place(213), 0u);
}

TEST(Torch, FlushesBeforeItFails) {
  Script s;
  const auto a = s.alloc(30 * MiB);
  s.free(a);
  s.alloc(50 * MiB);  // 30 + 50 exceeds 64: the flush frees the segment
  s.alloc(40 * MiB);  // fails after another flush
  Replayed r(s.events, "", {.capacity = 64 * MiB, .keep_calls = true});
  EXPECT_EQ(r.outcome.counters.flushes, 2u);
  EXPECT_EQ(r.outcome.counters.failures, 1u);
  EXPECT_EQ(sizes(r.allocator.device().calls()), (std::vector<Bytes>{30 * MiB, 30 * MiB, 50 * MiB}));
  EXPECT_EQ(r.outcome.failed_at, 3u);
}

TEST(Torch, NothingIsFlushedDuringACapture) {
  Script s;
  const auto a = s.alloc(30 * MiB);
  s.free(a);
  s.control(What::begin_capture);
  s.alloc(50 * MiB);
  s.control(What::end_capture);
  s.alloc(50 * MiB);
  Replayed r(s.events, "", {.capacity = 64 * MiB});
  EXPECT_EQ(r.outcome.counters.failures, 1u);
  EXPECT_EQ(r.outcome.counters.flushes, 1u);
}

// Emptying the cache while a capture or a pool of the user's is open: nothing but pools that nobody uses goes back.
TEST(Torch, EmptyingTheCacheDuringACaptureSparesTheDefaultPool) {
  Script s;
  s.free(s.alloc(30 * MiB));
  s.free(s.alloc(40 * MiB, 0, 1));
  s.control(What::retire_pool, 0, 1);
  s.control(What::begin_capture);
  s.control(What::empty_cache);
  const Replayed during(s.events);
  EXPECT_EQ(during.outcome.counters.reserved, 30 * MiB);
  s.control(What::end_capture);
  s.control(What::empty_cache);
  EXPECT_EQ(Replayed(s.events).outcome.counters.reserved, 0u);
}

TEST(Torch, HeldBlocksAreReusedOnlyAfterTheirFreeOrAFlush) {
  Script s;
  const auto a = s.alloc(30 * MiB);
  s.hold(a);
  s.alloc(30 * MiB);  // a second segment
  s.free(a);
  s.alloc(30 * MiB);  // the first one again
  Replayed r(s.events);
  EXPECT_EQ(r.outcome.counters.reserved_peak, 60 * MiB);
  EXPECT_EQ(r.outcome.counters.allocated_peak, 60 * MiB);

  Script flushed;
  const auto b = flushed.alloc(30 * MiB);
  flushed.hold(b);
  flushed.alloc(40 * MiB);
  flushed.free(b);  // already returned
  Replayed f(flushed.events, "", {.capacity = 64 * MiB});
  EXPECT_TRUE(f.outcome.completed());
  EXPECT_EQ(f.outcome.counters.flushes, 1u);
}

TEST(Torch, LimitCountsWholeSegments) {
  Script s;
  s.control(What::limit, 25 * MiB);
  s.alloc(2 * MiB);  // 20 MiB
  s.alloc(5 * MiB);  // in it
  s.alloc(6 * MiB);  // in it
  s.alloc(8 * MiB);  // 7 MiB are left of it, and 40 MiB are more than the limit
  EXPECT_EQ(Replayed(s.events).outcome.counters.failures, 1u);
}

TEST(Torch, MaxSplitKeepsLargeBlocksWhole) {
  Script s;
  const auto a = s.alloc(100 * MiB);
  s.free(a);
  s.alloc(30 * MiB);  // below 64: may not use a block of 64 or more
  Replayed split(s.events, "max_split_size_mb:64");
  EXPECT_EQ(split.outcome.counters.reserved_peak, 130 * MiB);
  EXPECT_EQ(Replayed(s.events).outcome.counters.reserved_peak, 100 * MiB);

  Script t;
  t.free(t.alloc(100 * MiB));
  t.alloc(85 * MiB);  // within 20 MiB of it: takes it whole
  EXPECT_EQ(Replayed(t.events, "max_split_size_mb:64").outcome.counters.allocated, 100 * MiB);
  Script u;
  u.free(u.alloc(100 * MiB));
  u.alloc(80 * MiB);  // not below 80 + 20
  EXPECT_EQ(Replayed(u.events, "max_split_size_mb:64").outcome.counters.reserved_peak, 180 * MiB);
}

TEST(Torch, OversizeBlocksAreReleasedBeforeAFlush) {
  Script s;
  const auto small = s.alloc(MiB);
  const auto large = s.alloc(100 * MiB);
  s.free(small);
  s.free(large);
  s.alloc(30 * MiB);
  Replayed r(s.events, "max_split_size_mb:64", {.capacity = 110 * MiB, .keep_calls = true});
  EXPECT_EQ(r.outcome.counters.flushes, 0u);
  EXPECT_EQ(sizes(r.allocator.device().calls()), (std::vector<Bytes>{2 * MiB, 100 * MiB, 100 * MiB, 30 * MiB}));
}

TEST(Torch, CollectsOldBlocks) {
  Script s;
  s.control(What::limit, 100 * MiB);
  s.free(s.alloc(20 * MiB));
  s.free(s.alloc(30 * MiB));
  const auto keep = s.alloc(20 * MiB);  // takes the first again
  s.alloc(40 * MiB);                    // 50 are held, which is more than 40 %: collects the 30
  s.free(keep);
  Replayed r(s.events, "garbage_collection_threshold:0.4");
  EXPECT_EQ(sizes(r.allocator.device().calls()), (std::vector<Bytes>{20 * MiB, 30 * MiB, 30 * MiB, 40 * MiB}));
  EXPECT_EQ(r.outcome.counters.flushes, 0u);
}

TEST(TorchExpandable, GrowsAtTheEndByPages) {
  Script s;
  s.alloc(30 * MiB);                 // 2 pages of 20
  const auto b = s.alloc(25 * MiB);  // 10 are left: 1 page more
  s.free(b);
  s.alloc(40 * MiB);  // 30 are free at the end: 1 page more
  Replayed r(s.events, "expandable_segments:True");
  EXPECT_EQ(sizes(r.allocator.device().calls()), (std::vector<Bytes>{40 * MiB, 20 * MiB, 20 * MiB}));
  EXPECT_EQ(r.outcome.counters.allocated, 70 * MiB);
}

TEST(TorchExpandable, UnmapsWholePagesOnly) {
  Script s;
  const auto a = s.alloc(50 * MiB);  // 3 pages
  s.alloc(30 * MiB);                 // 10 of the third page and one more
  s.free(a);
  s.control(What::empty_cache);  // pages 1 and 2 go; 10 MiB of page 3 stay
  s.alloc(9 * MiB);              // in those
  s.alloc(20 * MiB);             // a page in the hole
  Replayed r(s.events, "expandable_segments:True");
  const auto& calls = r.allocator.device().calls();
  EXPECT_EQ(sizes(calls), (std::vector<Bytes>{60 * MiB, 20 * MiB, 40 * MiB, 20 * MiB}));
  EXPECT_TRUE(calls[2].returned);
  EXPECT_EQ(calls[3].address, calls[0].address);
  EXPECT_EQ(r.outcome.counters.reserved, 60 * MiB);
}

TEST(TorchExpandable, GivesTheSegmentUpWhenNothingIsLeft) {
  Script s;
  s.free(s.alloc(50 * MiB));
  s.control(What::empty_cache);
  s.alloc(10 * MiB);
  Replayed r(s.events, "expandable_segments:True");
  EXPECT_EQ(r.outcome.counters.reserved, 20 * MiB);
  EXPECT_NE(r.allocator.device().calls()[0].address, r.allocator.device().calls()[2].address);
}

// The device has no room for the first page of a segment until a flush made some: its addresses are those of the page.
TEST(TorchExpandable, AddressesOfASegmentWhoseFirstPageNeededAFlush) {
  const std::vector<DeviceCall> calls{{false, 100 * MiB, 40 * MiB}, {true, 100 * MiB, 40 * MiB}, {false, 500 * MiB, 20 * MiB}};
  Script s;
  s.free(s.alloc(40 * MiB, 0));
  const auto other = s.alloc(20 * MiB, 1);
  const Replayed r(s.events, "expandable_segments:True", {.capacity = 50 * MiB, .keep_calls = true, .recorded = calls});
  EXPECT_TRUE(r.outcome.completed());
  EXPECT_EQ(r.outcome.counters.flushes, 1u);
  EXPECT_EQ(r.allocator.device().calls(), calls);
  EXPECT_EQ(r.allocator.address_of(other), 500 * MiB);
}

TEST(Torch, PrivatePoolsAreReleasedWhenRetired) {
  Script s;
  s.free(s.alloc(30 * MiB, 0, 1));
  s.control(What::empty_cache);
  s.alloc(30 * MiB);  // cannot use the block of the private pool
  s.control(What::retire_pool, 0, 1);
  s.control(What::empty_cache);
  Replayed r(s.events);
  EXPECT_EQ(r.outcome.counters.reserved_peak, 60 * MiB);
  EXPECT_EQ(r.outcome.counters.reserved, 30 * MiB);
}

}  // namespace
}  // namespace vramscope::whatif
