// A trace that is kept below a limit says the same about totals, peaks and what is live as one that is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "trace/test_file.h"

namespace vramscope::trace {
namespace {

struct PoolTotals {
  std::uint64_t allocs = 0;
  std::uint64_t frees = 0;
  std::uint64_t bytes = 0;
  std::uint64_t live = 0;
  std::uint64_t peak = 0;
  std::uint64_t largest = 0;
  bool operator==(const PoolTotals&) const = default;
};
std::ostream& operator<<(std::ostream& out, const PoolTotals& t) {
  return out << t.allocs << " allocs, " << t.frees << " frees, " << t.bytes << " bytes, live " << t.live << ", peak " << t.peak
             << ", largest " << t.largest;
}

struct Account {
  std::map<std::uint32_t, PoolTotals> pools;
  std::map<std::int64_t, std::map<std::uint32_t, std::uint64_t>> step_peak;  // step, pool
  std::uint64_t steps = 0;
  std::uint64_t omitted = 0;
  std::uint64_t host_peak = 0;
  std::map<std::uint64_t, std::uint64_t> live;  // address, bytes
};

// The reader's view: replay of what is there, and `omitted` for what is not.
class Replay {
 public:
  explicit Replay(const Reader& reader) : dictionaries_(reader.dictionaries()) {
    Chunk chunk;
    for (std::size_t c = 0; c < reader.chunks(); ++c) {
      const Status status = reader.read(c, chunk);
      EXPECT_TRUE(status) << status.error().message;
      add(chunk);
    }
  }

  Account account() const { return all_; }

 private:
  struct Block {
    std::uint32_t pool;
    std::uint64_t address;
    std::uint64_t bytes;
  };

  void add(const Chunk& chunk) {
    EXPECT_EQ(chunk.first_alloc, blocks_.size());
    std::array<std::size_t, 256> row{};
    std::uint64_t seq = 0;
    for (std::size_t i = 0; i < chunk.kind.size(); ++i) {
      EXPECT_GE(chunk.seq[i], seq);
      seq = chunk.seq[i];
      add(chunk.tables, chunk.kind[i], row[std::to_underlying(chunk.kind[i])]++);
    }
  }

  void add(const Tables& tables, EventKind kind, std::size_t row) {
    if (kind == EventKind::alloc) add(tables.alloc.row(row));
    if (kind == EventKind::free_) free(tables.free.alloc[row]);
    if (kind == EventKind::omitted) add(tables.omitted.row(row));
    if (kind == EventKind::mark && tables.mark.kind[row] == MarkKind::step)
      enter_step(tables.mark.edge[row] == MarkEdge::begin ? tables.mark.number[row] : -1);
    if (kind == EventKind::host_sample) all_.host_peak = std::max(all_.host_peak, tables.host_sample.rss[row]);
  }

  void add(const Alloc& alloc) {
    const std::uint32_t pool = std::to_underlying(dictionaries_.sites[std::to_underlying(alloc.site)].pool);
    blocks_.push_back({pool, alloc.address, alloc.granted});
    PoolTotals& totals = all_.pools[pool];
    ++totals.allocs;
    totals.bytes += alloc.granted;
    totals.live += alloc.granted;
    totals.largest = std::max(totals.largest, alloc.granted);
    EXPECT_TRUE(all_.live.emplace(alloc.address, alloc.granted).second) << "an address is live twice";
    raise_peak(pool, totals.live);
  }

  void free(std::uint64_t ordinal) {
    if (ordinal >= blocks_.size()) {
      ADD_FAILURE() << "a free without its allocation";
      return;
    }
    PoolTotals& totals = all_.pools[blocks_[ordinal].pool];
    ++totals.frees;
    totals.live -= blocks_[ordinal].bytes;
    EXPECT_EQ(all_.live.erase(blocks_[ordinal].address), 1u);
  }

  void add(const Omitted& omitted) {
    PoolTotals& totals = all_.pools[std::to_underlying(omitted.pool)];
    totals.allocs += omitted.allocs;
    totals.frees += omitted.allocs;
    totals.bytes += omitted.bytes;
    totals.largest = std::max(totals.largest, omitted.largest);
    all_.omitted += omitted.allocs;
    raise_peak(std::to_underlying(omitted.pool), omitted.peak);
  }

  void enter_step(std::int64_t number) {
    step_ = number;
    if (step_ < 0) return;
    ++all_.steps;
    for (const auto& [pool, totals] : all_.pools) all_.step_peak[step_][pool] = totals.live;
  }

  void raise_peak(std::uint32_t pool, std::uint64_t bytes) {
    all_.pools[pool].peak = std::max(all_.pools[pool].peak, bytes);
    if (step_ >= 0) all_.step_peak[step_][pool] = std::max(all_.step_peak[step_][pool], bytes);
  }

  const Dictionaries& dictionaries_;
  Account all_;
  std::vector<Block> blocks_;
  std::int64_t step_ = -1;
};

Account account(const Reader& reader) { return Replay(reader).account(); }

// Steps of random allocations in two pools, most of them short-lived; one step is the worst.
class Limited : public TestFile {
 protected:
  void record(Writer& writer, std::int64_t steps, std::uint64_t events_in_step) {
    std::mt19937_64 random(3);
    const StringId name = writer.string("step");
    const StringId layer = writer.string("layer");
    std::vector<PoolId> pools;
    std::vector<std::vector<SiteId>> sites(2);
    for (const char* pool : {"GPU_0_bfc", "CPU"}) {
      pools.push_back(writer.pool({writer.string(pool), 0, Level::tensor, Memory::device, Framework::tensorflow}));
      for (std::uint64_t i = 0; i < 300; ++i) {
        sites[pools.size() - 1].push_back(
            writer.site({.pool = pools.back(), .requested = 4 * i, .op = writer.string("op" + std::to_string(i))}));
      }
    }
    std::vector<std::pair<PoolId, std::uint64_t>> live;
    std::uint64_t seq = 0;
    std::uint64_t address = 0;
    const auto at = [&] {
      ++seq;
      return At{seq, seq * 3, {}};
    };
    for (std::int64_t step = 0; step < steps; ++step) {
      writer.append(at(), Mark{MarkKind::step, MarkEdge::begin, name, step, {}});
      for (std::uint64_t i = 0; i < events_in_step; ++i) {
        const bool worst = step == steps / 3;
        if (i % 50 == 0) writer.append(at(), Mark{MarkKind::layer, MarkEdge::begin, layer, 0, {}});
        if (i % 50 == 49) writer.append(at(), Mark{MarkKind::layer, MarkEdge::end, layer, 0, {}});
        if (live.size() > (worst ? 900 : 300) || (!live.empty() && random() % (worst ? 6 : 2) == 0)) {
          const std::size_t pick =
              live.size() - 1 -
              std::min<std::size_t>(random() % 20 == 0 ? random() % live.size() : random() % 4, live.size() - 1);
          writer.free(at(), live[pick].first, live[pick].second, 0);
          live.erase(live.begin() + static_cast<std::ptrdiff_t>(pick));
        } else {
          const std::size_t pool = random() % 8 == 0;
          const std::uint64_t site = random() % 300;
          address += 4096;
          writer.alloc(at(), {sites[pool][site], address, 4 * site + (random() % 100 == 0 ? 512 : 256), step});
          live.emplace_back(pools[pool], address);
        }
      }
      writer.append(at(), HostSample{static_cast<std::uint64_t>(step * 7919 % 1009), 0});
      writer.append(at(), Mark{MarkKind::step, MarkEdge::end, name, step, {}});
      ASSERT_TRUE(writer.flush());
    }
  }

  Account full(std::int64_t steps, std::uint64_t events_in_step) {
    Writer writer = create();
    record(writer, steps, events_in_step);
    EXPECT_TRUE(writer.finish());
    full_bytes_ = writer.bytes();
    const Account all = account(open());
    std::filesystem::remove(path_);
    return all;
  }

  Account limited(std::uint64_t limit, std::int64_t steps, std::uint64_t events_in_step) {
    Writer writer = create({.limit_bytes = limit});
    record(writer, steps, events_in_step);
    EXPECT_TRUE(writer.finish());
    bytes_ = std::filesystem::file_size(path_);
    EXPECT_EQ(writer.bytes(), bytes_);
    const Reader reader = open();
    EXPECT_EQ(reader.damage().message, "");
    EXPECT_FALSE(reader.damage().truncated);
    return account(reader);
  }

  std::uint64_t full_bytes_ = 0;
  std::uint64_t bytes_ = 0;
};

TEST_F(Limited, NothingIsLeftOutBelowTheLimit) {
  const Account all = full(20, 500);
  const Account same = limited(full_bytes_ * 2, 20, 500);
  EXPECT_EQ(bytes_, full_bytes_);
  EXPECT_EQ(same.omitted, 0u);
}

TEST_F(Limited, TotalsPeaksAndWhatIsLiveStayExact) {
  const Account all = full(400, 1000);
  for (const std::uint64_t part : {2u, 4u, 10u}) {
    const std::uint64_t limit = full_bytes_ / part;
    const Account thin = limited(limit, 400, 1000);
    EXPECT_GT(thin.omitted, 0u) << part;
    EXPECT_EQ(thin.pools, all.pools) << part;
    EXPECT_EQ(thin.live, all.live) << part;
    EXPECT_EQ(thin.host_peak, all.host_peak) << part;
    EXPECT_LE(bytes_, limit + limit / 8 + 20000) << part;
    std::filesystem::remove(path_);
  }
}

TEST_F(Limited, EachStepKeepsItsPeak) {
  const Account all = full(400, 1000);
  const Account thin = limited(full_bytes_ / 3, 400, 1000);
  EXPECT_EQ(thin.steps, all.steps);
  // At its start and at each of its allocations.
  EXPECT_EQ(thin.step_peak, all.step_peak);
}

TEST_F(Limited, TheFirstTheWorstAndTheLastStepKeepTheirDetail) {
  const Account all = full(400, 1000);
  (void)limited(full_bytes_ / 3, 400, 1000);
  const Reader reader = open();
  std::map<std::int64_t, std::uint64_t> events_of;  // step
  for (std::size_t c = 0; c < reader.chunks(); ++c) {
    const auto chunk = reader.chunk(c);
    ASSERT_TRUE(chunk);
    for (const std::int64_t step : chunk->tables.alloc.step) ++events_of[step];
  }
  EXPECT_GT(events_of[0], 400u);
  EXPECT_GT(events_of[400 / 3], 400u);
  EXPECT_GT(events_of[399], 400u);
  EXPECT_LT(events_of[250], 200u);
}

TEST_F(Limited, ALimitThatCannotBeKeptLosesNothingThatCounts) {
  const Account all = full(100, 300);
  const Account thin = limited(1000, 100, 300);
  EXPECT_EQ(thin.pools, all.pools);
  EXPECT_EQ(thin.live, all.live);
  EXPECT_LT(bytes_, full_bytes_);
}

TEST_F(Limited, WhereTheFileCannotBeReplacedItGrowsAndSaysWhy) {
  std::filesystem::path beside = path_;
  beside += ".thinned";
  std::filesystem::create_directories(beside / "in the way");
  const Account all = full(100, 300);
  const Account same = limited(10000, 100, 300);
  EXPECT_EQ(same.pools, all.pools);
  EXPECT_GE(bytes_, full_bytes_);
  EXPECT_THAT(open().dictionaries().strings, ::testing::Contains(::testing::HasSubstr("a.vram.thinned: cannot create the file")));
}

TEST_F(Limited, AReaderThatIsOpenSeesTheOldFile) {
  Writer writer = create({.limit_bytes = 20000});
  record(writer, 3, 500);
  const Reader before = open();
  const Account first = account(before);
  record(writer, 100, 500);
  const Account again = account(before);
  EXPECT_EQ(first.pools, again.pools);
}

TEST_F(Limited, WhatACrashLeftBesideTheTraceIsInNobodysWay) {
  std::filesystem::path beside = path_;
  beside += ".thinned";
  std::ofstream(beside) << "half a file";
  const Account thin = limited(20000, 100, 500);
  EXPECT_GT(thin.omitted, 0u);
  EXPECT_FALSE(std::filesystem::exists(beside));
}

}  // namespace
}  // namespace vramscope::trace
