// Recordings come from others: sizes, addresses and patterns that no program has.
#include <gtest/gtest.h>

#include <random>

#include "whatif/bounds/bounds.h"
#include "whatif/replay/replay.h"
#include "whatif/replay/test_events.h"

namespace vramscope::whatif {
namespace {

constexpr Bytes MiB = Bytes{1} << 20;

std::vector<Scenario> scenarios() {
  std::vector<Scenario> out;
  for (const char* settings :
       {"", "expandable_segments:True", "roundup_power2_divisions:4", "max_split_size_mb:256",
        "garbage_collection_threshold:0.1,per_process_memory_fraction:0.5", "large_segment_size_mb:1099511627775"})
    out.push_back({.kind = Scenario::Kind::torch, .torch = *TorchSettings::parse(settings, 211)});
  for (const bool growth : {true, false})
    out.push_back({.kind = Scenario::Kind::bfc, .bfc = {.growth = growth, .collection = true}});
  for (const auto kind : {Scenario::Kind::stream_pool, Scenario::Kind::uncached}) out.push_back({.kind = kind});
  return out;
}

Events absurd_sizes(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Script script;
  std::vector<std::uint32_t> live;
  const Bytes sizes[] = {kUnlimited,
                         kUnlimited - 511,
                         Bytes{1} << 63,
                         Bytes{1} << 48,
                         (Bytes{1} << 48) - 1,
                         kLargestDevice,
                         kLargestDevice / 2,
                         Bytes{1} << 40,
                         100 * MiB,
                         100,
                         0,
                         random()};
  for (int i = 0; i < 400; ++i) {
    if (!live.empty() && random() % 100 < 45) {
      std::swap(live[random() % live.size()], live.back());
      script.free(live.back());
      live.pop_back();
    } else {
      live.push_back(script.alloc(sizes[random() % std::size(sizes)], static_cast<std::uint16_t>(random() % 3)));
    }
  }
  return script.events;
}

TEST(Hostile, SizesThatNoDeviceHas) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Events events = absurd_sizes(seed);
    for (Scenario scenario : scenarios()) {
      for (const Bytes total : {Bytes{1}, Bytes{80} << 30, kUnlimited}) {
        scenario.device.total = total;
        const auto allocator = make_allocator(scenario);
        replay(events, *allocator, OnFailure::go_on);
        EXPECT_LE(allocator->counters().reserved_peak, kLargestDevice);
        EXPECT_LE(allocator->device().used(), kLargestDevice);
        smallest_capacity(events, scenario);
      }
    }
    EXPECT_LE(bounds_of(events, 512).packed.value_or(0), events.size() * kLargestDevice);
  }
}

// The first request is larger than the addresses that a segment reserves.
TEST(Hostile, RequestsBeyondAnExpandableSegment) {
  Script script;
  script.alloc(100 * MiB);
  const Scenario scenario{.torch = *TorchSettings::parse("expandable_segments:True", 211), .device = {.total = 40 * MiB}};
  const Outcome outcome = replay(script.events, scenario);
  EXPECT_FALSE(outcome.completed());
  EXPECT_EQ(outcome.failed_bytes, 100 * MiB);
}

TEST(Hostile, RecordedAddressesThatAreAllTheSame) {
  const std::vector<DeviceCall> calls(4000, {false, 4096, 20 * MiB});
  const Events events = random_program(7, 3000, 3, true);
  for (Scenario scenario : scenarios()) {
    const Outcome plain = replay(events, scenario, OnFailure::go_on);
    scenario.device.recorded = calls;
    EXPECT_EQ(replay(events, scenario, OnFailure::go_on).counters.allocated_peak > 0, plain.counters.allocated_peak > 0);
  }
}

// Half of the blocks are free and too small for what follows, which takes new pages each time.
TEST(Hostile, ManySmallHolesAreNotWalkedOver) {
  constexpr int kBlocks = 200'000;
  Script script;
  for (int i = 0; i < kBlocks; ++i) script.alloc(1024);
  for (std::uint32_t i = 0; i < kBlocks; i += 2) script.free(i);
  for (int i = 0; i < kBlocks; ++i) script.alloc(2 * MiB);  // minutes, if each looks at all holes
  EXPECT_TRUE(replay(script.events, {.kind = Scenario::Kind::stream_pool}).completed());
}

// Every other request finds the device full, and returns what is unused: in between, very many free blocks are looked at.
TEST(Hostile, WorkIsBounded) {
  constexpr std::uint32_t kSegments = 20'000;
  Script script;
  std::vector<std::uint32_t> kept;
  for (std::uint32_t i = 0; i < kSegments; ++i) {
    kept.push_back(script.alloc(MiB));
    script.free(script.alloc(512));
  }
  for (const std::uint32_t block : kept) script.free(block);
  for (std::uint32_t i = 0; i < 100; ++i) script.control(What::empty_cache);
  Work enough(script.events.size()), little(0);
  little.spend(Work::kLeast - 1000);
  const auto reached = [&](Work& work) {
    Scenario scenario;
    scenario.device.work = &work;
    return replay(script.events, scenario).counters.allocated_peak;
  };
  EXPECT_EQ(reached(enough), Bytes{kSegments} * MiB + 512);
  EXPECT_FALSE(enough.exhausted());
  reached(little);
  EXPECT_TRUE(little.exhausted());
  EXPECT_EQ(reached(little), 0u);  // not even begun
}

}  // namespace
}  // namespace vramscope::whatif
