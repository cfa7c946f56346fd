// The other models by hand, and what holds for all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "whatif/replay/bfc.h"
#include "whatif/replay/replay.h"
#include "whatif/replay/test_events.h"

namespace vramscope::whatif {
namespace {

constexpr Bytes KiB = 1024, MiB = 1024 * KiB;

std::vector<Bytes> grown(const Allocator& allocator) {
  std::vector<Bytes> out;
  for (const DeviceCall& call : allocator.device().calls()) out.push_back(call.bytes);
  return out;
}

TEST(Bfc, RegionsDouble) {
  Script s;
  s.alloc(1);
  s.alloc(2 * MiB);    // 4 MiB
  s.alloc(3 * MiB);    // 8 MiB
  s.alloc(60 * MiB);   // the step is doubled to 64 for it, and not again
  s.alloc(60 * MiB);   // 64 MiB again
  s.alloc(100 * MiB);  // 128 MiB
  BfcAllocator bfc({}, {.keep_calls = true});
  EXPECT_TRUE(replay(s.events, bfc).completed());
  EXPECT_EQ(grown(bfc), (std::vector<Bytes>{2 * MiB, 4 * MiB, 8 * MiB, 64 * MiB, 64 * MiB, 128 * MiB}));
}

TEST(Bfc, SplitsFromTwiceTheRequest) {
  Script s;
  const auto a = s.alloc(MiB), b = s.alloc(MiB);  // the 2 MiB of the first region
  s.alloc(256);                                   // in the second
  s.free(a);
  s.alloc(600 * KiB);  // takes the whole first chunk
  BfcAllocator bfc({}, {});
  replay(s.events, bfc);
  EXPECT_EQ(bfc.counters().allocated, 2 * MiB + 256);
  s.free(b);
  s.alloc(512 * KiB);  // half of the second
  BfcAllocator half({}, {});
  replay(s.events, half);
  EXPECT_EQ(half.counters().allocated, MiB + 512 * KiB + 256);
}

TEST(Bfc, LimitCutsTheLastRegionAndTheDeviceShrinksIt) {
  Script s;
  s.alloc(1);
  s.alloc(3 * MiB);
  BfcAllocator limited({.limit = 5 * MiB}, {.keep_calls = true});
  EXPECT_TRUE(replay(s.events, limited).completed());
  EXPECT_EQ(grown(limited), (std::vector<Bytes>{2 * MiB, 3 * MiB}));
  Script t;
  t.alloc(1);
  t.alloc(2 * MiB);  // 4 MiB do not fit: 0.9 of it, again and again, until it does
  BfcAllocator shrunk({}, {.capacity = 5 * MiB, .keep_calls = true});
  EXPECT_TRUE(replay(t.events, shrunk).completed());
  ASSERT_EQ(grown(shrunk).size(), 2u);
  EXPECT_LE(grown(shrunk)[1], 3 * MiB);
  EXPECT_GT(grown(shrunk)[1], 2700 * KiB);
}

TEST(Bfc, OneRegionWithoutGrowth) {
  Script s;
  s.alloc(1);
  s.alloc(50 * MiB);
  BfcAllocator bfc({.limit = 100 * MiB, .growth = false}, {.keep_calls = true});
  EXPECT_TRUE(replay(s.events, bfc).completed());
  EXPECT_EQ(grown(bfc), (std::vector<Bytes>{100 * MiB}));
}

TEST(Bfc, CollectionReturnsFreeRegions) {
  Script s;
  const auto a = s.alloc(30 * MiB);
  s.free(a);
  s.alloc(40 * MiB);
  EXPECT_FALSE(replay(s.events, Scenario{.kind = Scenario::Kind::bfc, .bfc = {.limit = 64 * MiB}}).completed());
  const Outcome collected =
      replay(s.events, Scenario{.kind = Scenario::Kind::bfc, .bfc = {.limit = 64 * MiB, .collection = true}});
  EXPECT_TRUE(collected.completed());
  EXPECT_EQ(collected.device_returns, 1u);
}

TEST(Bfc, CollectionReturnsRegionsByAddress) {
  // The second region lies below the first.
  const std::vector<DeviceCall> calls{{false, 96 * MiB, 16 * MiB},
                                      {false, 32 * MiB, 32 * MiB},
                                      {true, 32 * MiB, 32 * MiB},
                                      {true, 96 * MiB, 16 * MiB},
                                      {false, 128 * MiB, 64 * MiB}};
  Script s;
  const auto a = s.alloc(16 * MiB), b = s.alloc(30 * MiB);
  s.free(a);
  s.free(b);
  s.alloc(60 * MiB);
  BfcAllocator bfc({.limit = 64 * MiB, .collection = true}, {.keep_calls = true, .recorded = calls});
  EXPECT_TRUE(replay(s.events, bfc).completed());
  EXPECT_EQ(bfc.device().calls(), calls);
}

TEST(StreamPoolModel, Pages) {
  const Scenario scenario{.kind = Scenario::Kind::stream_pool};
  Script one;
  one.alloc(1);
  EXPECT_EQ(replay(one.events, scenario).counters.reserved, 32 * MiB);
  Script big;
  big.alloc(1025 * MiB);
  EXPECT_EQ(replay(big.events, scenario).counters.reserved, 1056 * MiB);
  Script row;
  for (int i = 0; i < 7; ++i) row.alloc(100 * MiB);
  EXPECT_EQ(replay(row.events, scenario).counters.reserved, 704 * MiB);
}

TEST(StreamPoolModel, FreePagesMove) {
  for (const auto& [hole, grows] : std::map<Bytes, bool>{{64 * MiB, false}, {16 * MiB, true}}) {
    Script s;
    std::vector<std::uint32_t> holes;
    for (int i = 0; i < 4; ++i) {
      holes.push_back(s.alloc(hole));
      s.alloc(hole);
    }
    const Bytes before = replay(s.events, Scenario{.kind = Scenario::Kind::stream_pool}).counters.reserved;
    for (const auto block : holes) s.free(block);
    s.alloc(4 * hole);
    EXPECT_EQ(replay(s.events, Scenario{.kind = Scenario::Kind::stream_pool}).counters.reserved > before, grows) << hole;
  }
}

TEST(StreamPoolModel, ReleasesAtASynchronize) {
  Script s;
  for (int i = 0; i < 8; ++i) s.free(s.alloc(200 * MiB));
  s.control(What::synchronize);
  Scenario scenario{.kind = Scenario::Kind::stream_pool};
  EXPECT_EQ(replay(s.events, scenario).counters.reserved, 224 * MiB);
  scenario.pool.release_threshold = 100 * MiB;
  EXPECT_EQ(replay(s.events, scenario).counters.reserved, 96 * MiB);
}

// ---- What holds for all of them ----

struct Case {
  const char* name;
  Scenario scenario;
  unsigned streams = 1;
};

Scenario torch_scenario(const char* text, Bytes limit = 0, int version = 211) {
  Scenario scenario;
  scenario.torch = TorchSettings::parse(text, version).value();
  scenario.torch.limit = limit;
  return scenario;
}

std::vector<Case> cases() {
  constexpr Bytes kTight = 1400 * MiB;
  return {
      {"torch", torch_scenario("")},
      {"torch 2.12", torch_scenario("", 0, 212)},
      {"torch 2.13", torch_scenario("", 0, 213), 2},
      {"expandable 2.13", torch_scenario("expandable_segments:True", kTight, 213), 2},
      {"torch with streams", torch_scenario(""), 3},
      {"torch with a limit", torch_scenario("", kTight), 2},
      {"expandable", torch_scenario("expandable_segments:True"), 2},
      {"expandable with a limit", torch_scenario("expandable_segments:True", kTight), 2},
      {"max split", torch_scenario("max_split_size_mb:32", kTight)},
      {"divisions", torch_scenario("roundup_power2_divisions:4")},
      {"collection", torch_scenario("garbage_collection_threshold:0.5", kTight)},
      {"large segments", torch_scenario("expandable_segments:True,large_segment_size_mb:64")},
      {"bfc", {.kind = Scenario::Kind::bfc}},
      {"bfc with a limit", {.kind = Scenario::Kind::bfc, .bfc = {.limit = kTight, .collection = true}}},
      {"bfc, one region", {.kind = Scenario::Kind::bfc, .bfc = {.limit = 4096 * MiB, .growth = false}}},
      {"stream pool", {.kind = Scenario::Kind::stream_pool}},
  };
}

struct Sums {
  Bytes used = 0, mapped = 0;
};

// Pieces of one segment follow each other without a gap; nothing overlaps.
Sums check_pieces(const Allocator& allocator, bool tiles) {
  Sums sums;
  std::vector<Piece> pieces;
  std::uint64_t expected = 0;
  bool free_before = false;
  allocator.for_each_piece([&](const Piece& piece) {
    if (tiles && !piece.first) {
      EXPECT_EQ(piece.address, expected);
      EXPECT_FALSE(piece.mapped && free_before && !piece.used && !piece.held) << "two free neighbors";
    }
    expected = piece.address + piece.bytes;
    free_before = !piece.used && !piece.held && piece.mapped;
    EXPECT_GT(piece.bytes, 0u);
    if (piece.used) sums.used += piece.bytes;
    if (piece.mapped) sums.mapped += piece.bytes;
    pieces.push_back(piece);
  });
  std::ranges::sort(pieces, {}, &Piece::address);
  for (std::size_t i = 1; i < pieces.size(); ++i)
    EXPECT_LE(pieces[i - 1].address + pieces[i - 1].bytes, pieces[i].address) << "overlap";
  return sums;
}

TEST(EveryModel, KeepsItsBooks) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Events events = random_program(7, 4000, c.streams, true);
    const auto allocator = make_allocator(c.scenario);
    for (std::size_t from = 0; from < events.size(); from += 97) {
      const auto part = std::span(events).subspan(from, std::min<std::size_t>(97, events.size() - from));
      replay(part, *allocator, OnFailure::go_on);
      const Sums sums = check_pieces(*allocator, c.scenario.kind != Scenario::Kind::stream_pool);
      EXPECT_EQ(sums.mapped, allocator->counters().reserved);
      EXPECT_EQ(sums.used, allocator->counters().allocated);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(EveryModel, GivesEachRequestItsBytesAndAlignment) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Events events = random_program(11, 3000, c.streams);
    const auto allocator = make_allocator(c.scenario);
    std::map<std::uint64_t, std::pair<Bytes, std::uint32_t>> live;  // by address
    std::map<std::uint32_t, std::uint64_t> at;
    for (const Event& event : events) {
      if (replay({&event, 1}, *allocator).completed() && event.what == What::alloc) {
        const std::uint64_t address = allocator->address_of(event.block);
        EXPECT_EQ(address % 256, 0u);
        const auto next = live.lower_bound(address);
        EXPECT_TRUE(next == live.end() || address + event.bytes <= next->first);
        EXPECT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second.first <= address);
        live[address] = {event.bytes, event.block};
        at[event.block] = address;
      } else if (event.what == What::free && at.contains(event.block)) {
        live.erase(at[event.block]);
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(EveryModel, ReplayOfItsOwnCallsIsAFixedPoint) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Events events = random_program(5, 3000, c.streams, true);
    Scenario first = c.scenario;
    first.device.seed = 3;
    first.device.keep_calls = true;
    const auto original = make_allocator(first);
    replay(events, *original, OnFailure::go_on);
    if (c.scenario.kind == Scenario::Kind::stream_pool) continue;  // has one range of addresses of its own
    Scenario again = c.scenario;
    again.device.recorded = original->device().calls();
    again.device.keep_calls = true;
    const auto copy = make_allocator(again);
    replay(events, *copy, OnFailure::go_on);
    EXPECT_EQ(copy->device().differs_at(), std::nullopt);
    EXPECT_EQ(copy->device().calls(), original->device().calls());
  }
}

TEST(EveryModel, SmallestCapacityCompletesAndLessDoesNot) {
  for (const Case& c : cases()) {
    if (c.scenario.torch.limit != 0 || c.scenario.bfc.limit != kUnlimited) continue;
    SCOPED_TRACE(c.name);
    const Events events = random_program(3, 2000, c.streams);
    const auto smallest = smallest_capacity(events, c.scenario);
    ASSERT_TRUE(smallest);
    Scenario exact = c.scenario;
    exact.device.capacity = smallest->capacity;
    EXPECT_TRUE(replay(events, exact).completed());
    exact.device.capacity = smallest->outcome.counters.allocated_peak * 9 / 10;
    EXPECT_FALSE(replay(events, exact).completed());
  }
}

TEST(Orders, RangeHoldsTheTypicalOutcome) {
  const Events events = random_program(2, 5000);
  const Spread spread = replay_orders(events, Scenario{});
  EXPECT_LE(spread.reserved.low, spread.typical.counters.reserved_peak);
  EXPECT_GE(spread.reserved.high, spread.typical.counters.reserved_peak);
  EXPECT_LE(spread.reserved.low, spread.reserved.median);
}

// Between a capacity that is enough in every order and one that is enough in none.
TEST(Orders, TheFirstFailureDecides) {
  constexpr unsigned kOrders = 6;
  const Events events = random_program(2, 2000);
  const auto smallest = smallest_capacity(events, Scenario{});
  ASSERT_TRUE(smallest);
  unsigned completed = 0;
  for (unsigned share = 90; share <= 120; share += 3) {
    Scenario limited;
    limited.device.capacity = smallest->capacity / 100 * share;
    const Spread spread = replay_orders(events, limited, kOrders);
    const Spread trial = replay_orders(events, limited, kOrders, OnFailure::stop);
    EXPECT_EQ(trial.failed == 0, spread.failed == 0) << share;
    EXPECT_LE(trial.failed, 1u) << share;
    EXPECT_EQ(trial.typical.counters.flushes, spread.typical.counters.flushes) << share;
    completed += trial.failed == 0 ? 1 : 0;
  }
  EXPECT_GT(completed, 0u);
  EXPECT_LT(completed, 11u);
}

TEST(SortedBlocksSet, BehavesLikeAMap) {
  std::mt19937_64 random(1);
  SortedBlocks ours;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> theirs;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const std::uint64_t major = random() % 300, minor = random() % 300;
    if (theirs.emplace(std::pair(major, minor), i).second) ours.insert({major, minor, i});
    if (i % 3 == 0 || theirs.size() > 2000) {
      const auto victim = std::next(theirs.begin(), static_cast<std::ptrdiff_t>(random() % theirs.size()));
      ours.erase({victim->first.first, victim->first.second, 0});
      theirs.erase(victim);
    }
    const auto expected = theirs.lower_bound({major, 150});
    const auto found = ours.lower_bound({major, 150, 0});
    ASSERT_EQ(expected == theirs.end(), found == ours.end());
    if (expected == theirs.end()) continue;
    ASSERT_EQ(ours.at(found).block, expected->second);
  }
  std::vector<std::uint32_t> all, reversed;
  for (auto at = ours.begin(); at != ours.end(); at = ours.next(at)) all.push_back(ours.at(at).block);
  for (auto at = ours.end(); at != ours.begin();) reversed.push_back(ours.at(at = ours.previous(at)).block);
  std::ranges::reverse(reversed);
  EXPECT_EQ(all, reversed);
  EXPECT_EQ(all.size(), theirs.size());
}

}  // namespace
}  // namespace vramscope::whatif
