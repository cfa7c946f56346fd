// Every query against a brute-force replay of the same trace.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <random>

#include "analyze/api.h"
#include "replay.h"
#include "training.h"

namespace vramscope {
namespace {

using namespace analyze;
namespace fs = std::filesystem;

class Queries : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("vs-queries-" + std::to_string(::getpid()) + "-" + GetParam());
    fs::create_directories(folder_);
    path_ = folder_ / "run.vram";
    tracegen::Training t;
    std::string name = GetParam();
    if (name == "leak") {
      t.leak_bytes = 4096;
      t.steps = 200;
    }
    if (name == "noise") {
      t.noise = 1 << 20;
      t.steps = 300;
    }
    if (name == "shapes") {
      t.variable_shapes = true;
      t.steps = 150;
    }
    if (name == "devices") t.devices = 3;
    if (name == "oom") {
      t.maker.pool.limit = 24u << 20;
      t.leak_bytes = 1 << 20;
    }
    if (name == "long") {  // more than a million events: columns come from whole leaves
      t.layers = 60;
      t.steps = 900;
    }
    truth_ = tracegen::write_training(path_, t).value();
    // Twice: the second one answers from the index.
    OpenOptions options;
    options.cache = folder_ / "cache";
    options.index_after_s = 0;
    ASSERT_TRUE(Engine::open(path_, options));
    engine_.emplace(Engine::open(path_, options).value());
    reader_.emplace(trace::Reader::open(path_).value());
    replay_.emplace(*reader_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_, path_;
  tracegen::Truth truth_;
  std::optional<Engine> engine_;
  std::optional<trace::Reader> reader_;
  std::optional<test::Replay> replay_;
};

TEST_P(Queries, PeakIsTheTruth) {
  const Place& place = engine_->places()[static_cast<std::size_t>(engine_->main_place())];
  EXPECT_EQ(place.peak, truth_.peak);
  EXPECT_EQ(place.end, truth_.end);
  EXPECT_EQ(engine_->live_at(place.peak_at), truth_.peak);
  EXPECT_EQ(replay_->total(place.peak_at), truth_.peak);
}

TEST_P(Queries, TheSentenceSaysWhetherStepsAreAlike) {
  const Steps steps = engine_->steps();
  ASSERT_TRUE(steps.has_steady);
  Bytes low = ~Bytes{0}, high = 0;
  for (std::size_t i = steps.steady_first; i <= steps.steady_last; ++i) {
    low = std::min(low, steps.steps[i].peak);
    high = std::max(high, steps.steps[i].peak);
  }
  const std::string sentence = engine_->overview().sentence;
  if (low < high - high / 20) {
    EXPECT_EQ(sentence.find("in every steady step"), std::string::npos) << sentence << " from " << low << " to " << high;
  }
  if (std::string(GetParam()) == "shapes") {
    EXPECT_NE(sentence.find("its steady steps peak at"), std::string::npos) << sentence;
  }
}

// Devices that run one program hold the same at their peaks, each block of the same category.
TEST_P(Queries, CategoriesAreTheSameOnEveryDevice) {
  std::map<std::string, Bytes> first;
  for (std::size_t i = 0; i < engine_->places().size(); ++i) {
    if (engine_->places()[i].device < 0 || engine_->places()[i].driver) continue;
    std::map<std::string, Bytes> held;
    const Live live = engine_->live({"step:3", {By::category}, "", static_cast<int>(i), 0}).value();
    for (const Group& g : live.groups) held[g.keys[0]] = g.bytes;
    EXPECT_GT(held["activations"], 0u) << engine_->places()[i].name;
    if (first.empty()) first = held;
    EXPECT_EQ(held, first) << engine_->places()[i].name;
  }
}

TEST_P(Queries, LiveSetAtRandomMoments) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 40; ++i) {
    Moment at = random() % (replay_->change.size() + 1);
    std::map<std::string, Bytes> wanted;
    Bytes total = 0;
    std::uint64_t count = 0;
    for (const auto& b : replay_->blocks)
      if (b.pool == 0 && replay_->lives(b, at)) {
        wanted[b.op] += b.granted;
        total += b.granted;
        ++count;
      }
    LiveRequest request;
    request.at = "moment:" + std::to_string(at);
    request.by = {By::op};
    request.limit = 0;
    request.place = 0;
    Live live = engine_->live(request).value();
    EXPECT_EQ(live.total, total);
    EXPECT_EQ(live.count, count);
    std::map<std::string, Bytes> got;
    for (const Group& g : live.groups) got[g.keys[0]] += g.bytes;
    EXPECT_EQ(got, wanted);
    EXPECT_EQ(engine_->live_at(at, 0), total);
  }
}

TEST_P(Queries, EachColumnIsAStateThatOccurred) {
  std::uint64_t end = replay_->time_us.back();
  std::mt19937_64 random(8);
  for (int i = 0; i < 12; ++i) {
    StackedRequest request;
    request.place = 0;
    request.width = 50 + static_cast<std::uint32_t>(random() % 300);
    if (i > 2) {
      request.t0_us = random() % end;
      request.t1_us = request.t0_us + 1 + random() % (end - request.t0_us + 1);
    }
    request.by = i % 2 == 0 ? By::category : By::op;
    Stacked got = engine_->stacked(request).value();
    std::vector<Bytes> totals(replay_->change.size() + 1, 0);
    for (std::size_t e = 0; e < replay_->change.size(); ++e) totals[e + 1] = totals[e] + static_cast<Bytes>(replay_->change[e]);
    Bytes highest = 0;
    for (std::size_t c = 0; c < got.high.size(); ++c) {
      Bytes sum = 0;
      for (const auto& group : got.peak) sum += group[c];
      EXPECT_EQ(sum, got.high[c]);
      EXPECT_EQ(totals[got.at[c]], got.high[c]) << "column " << c;  // that state occurred
      highest = std::max(highest, got.high[c]);
      if (!got.exact_borders) continue;
      auto from = std::ranges::lower_bound(replay_->time_us, got.border_us[c]) - replay_->time_us.begin();
      auto to = c + 1 < got.high.size()
                    ? std::ranges::lower_bound(replay_->time_us, got.border_us[c + 1]) - replay_->time_us.begin()
                    : std::ranges::upper_bound(replay_->time_us, got.border_us[c + 1]) - replay_->time_us.begin();
      EXPECT_EQ(got.high[c], *std::max_element(totals.begin() + from, totals.begin() + to + 1));
      EXPECT_EQ(got.low[c], *std::min_element(totals.begin() + from, totals.begin() + to + 1));
    }
    if (i == 0) {
      EXPECT_EQ(highest, *std::ranges::max_element(totals));
    }
  }
}

TEST_P(Queries, CompositionByOpAtAColumn) {
  StackedRequest request;
  request.place = 0;
  request.width = 20;
  request.by = By::op;
  Stacked got = engine_->stacked(request).value();
  for (std::size_t c = 0; c < got.at.size(); ++c) {
    std::map<std::string, Bytes> wanted;
    for (const auto& b : replay_->blocks)
      if (b.pool == 0 && replay_->lives(b, got.at[c])) wanted[b.op] += b.granted;
    for (std::size_t g = 0; g + 1 < got.groups.size(); ++g) EXPECT_EQ(got.peak[g][c], wanted[got.groups[g]]) << got.groups[g];
  }
}

TEST_P(Queries, BytesAllocatedInARange) {
  std::mt19937_64 random(9);
  std::uint64_t end = replay_->time_us.back();
  for (int i = 0; i < 10; ++i) {
    TopRequest request;
    request.place = 0;
    request.t0_us = random() % end;
    request.t1_us = request.t0_us + 1 + random() % (end - request.t0_us + 1);
    request.limit = 0;
    std::map<std::string, Bytes> wanted, got;
    for (const auto& b : replay_->blocks)
      if (b.pool == 0 && replay_->time_us[b.birth] >= request.t0_us && replay_->time_us[b.birth] <= request.t1_us)
        wanted[b.op] += b.granted;
    Top top = engine_->top(request).value();
    for (const Group& g : top.groups) got[g.keys[0]] += g.bytes;
    EXPECT_EQ(got, wanted);
  }
}

TEST_P(Queries, AddressMapTilesTheRegions) {
  for (const char* at : {"peak", "end", "start"}) {
    MapRequest request;
    request.at = at;
    request.place = 0;
    AddressMap map = engine_->address_map(request).value();
    Bytes blocks = 0, holes = 0;
    for (const MapBlock& b : map.blocks) blocks += b.granted;
    for (const Hole& h : map.holes) holes += h.bytes;
    EXPECT_EQ(blocks + holes, map.pool_bytes);
    EXPECT_EQ(map.outside, 0u);
    EXPECT_EQ(map.pool_bytes, engine_->regions_at(map.at, 0));
    EXPECT_EQ(blocks, engine_->live_at(map.at, 0));
  }
}

TEST_P(Queries, DiffOfTwoMoments) {
  std::mt19937_64 random(10);
  for (int i = 0; i < 10; ++i) {
    Moment a = random() % (replay_->change.size() + 1), b = random() % (replay_->change.size() + 1);
    DiffRequest request;
    request.a = "moment:" + std::to_string(a);
    request.b = "moment:" + std::to_string(b);
    request.place = 0;
    Diff diff = engine_->diff(request).value();
    EXPECT_EQ(diff.total_a, replay_->total(a));
    EXPECT_EQ(diff.total_b, replay_->total(b));
    Bytes came = 0, went = 0;
    for (const auto& block : replay_->blocks) {
      if (block.pool != 0) continue;
      bool in_a = replay_->lives(block, a), in_b = replay_->lives(block, b);
      if (in_b && !in_a) came += block.granted;
      if (in_a && !in_b) went += block.granted;
    }
    EXPECT_EQ(diff.came, came);
    EXPECT_EQ(diff.went, went);
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, Queries, ::testing::Values("clean", "leak", "noise", "shapes", "devices", "oom", "long"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace vramscope
