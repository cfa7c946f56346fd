// What was written is what is read. Long because each kind of event and report has its row.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <random>
#include <thread>

#include "trace/reader.h"
#include "trace/test_file.h"
#include "trace/writer.h"

namespace vramscope::trace {
namespace {

namespace fs = std::filesystem;

class RoundTrip : public TestFile {};

TEST_F(RoundTrip, AnEmptyTraceIsReadable) {
  ASSERT_TRUE(create({.start_realtime_us = 1234567}).finish());
  const Reader reader = open();
  EXPECT_EQ(reader.events(), 0u);
  EXPECT_EQ(reader.chunks(), 0u);
  EXPECT_EQ(reader.start_realtime_us(), 1234567u);
  EXPECT_FALSE(reader.damage().truncated);
  EXPECT_EQ(reader.damage().message, "");
}

TEST_F(RoundTrip, DictionariesKeepTheirIdsAndAreInterned) {
  Writer writer = create();
  const StringId op = writer.string("model/dense/MatMul");
  EXPECT_EQ(writer.string("model/dense/MatMul"), op);
  EXPECT_EQ(writer.string(""), StringId{});
  const Pool pool{writer.string("GPU_0_bfc"), 0, Level::tensor, Memory::device, Framework::tensorflow};
  const PoolId pool_id = writer.pool(pool);
  EXPECT_EQ(writer.pool(pool), pool_id);
  const Frame frame{writer.string("train"), writer.string("train.py"), 12, 0, {}};
  const FrameId frame_id = writer.frame(frame);
  const std::vector<FrameId> frames = {frame_id, frame_id};
  const StackId stack = writer.stack(0xfeedfacefeedfaceu, frames, 745);
  EXPECT_NE(stack, StackId{});
  const Site site{pool_id, 1000, op, writer.string("output"), 1, writer.string("[10,25]"), stack, 7, {}, 1};
  const SiteId site_id = writer.site(site);
  EXPECT_EQ(writer.site(site), site_id);
  Site other = site;
  other.requested = 1001;
  EXPECT_NE(writer.site(other), site_id);
  const Thread thread{4711, writer.string("main")};
  EXPECT_EQ(writer.thread(thread), ThreadId{0});
  const OpSource source{op, writer.string("model.py"), 3, {}, writer.string("dense")};
  writer.op_source(source);
  const SourceFile file{writer.string("model.py"), SourceState::changed, 1'700'000'000'000'000};
  writer.source_file(file);
  const std::vector<SourceLine> lines = {{file.file, 3, writer.string("  x = dense(x)")}, {file.file, 4, {}}};
  for (const SourceLine& line : lines) writer.source_line(line);
  writer.source_line(lines[0]);
  ASSERT_TRUE(writer.finish());

  const Reader reader = open();
  const Dictionaries& all = reader.dictionaries();
  EXPECT_EQ(all.strings.at(std::to_underlying(op)), "model/dense/MatMul");
  EXPECT_EQ(all.pools.at(std::to_underlying(pool_id)), pool);
  EXPECT_EQ(all.frames.at(std::to_underlying(frame_id)), frame);
  EXPECT_EQ(all.stacks.at(std::to_underlying(stack)), (Stack{0xfeedfacefeedfaceu, frames, 745}));
  EXPECT_EQ(all.sites.at(std::to_underlying(site_id)), site);
  EXPECT_EQ(all.sites.size(), 2u);
  EXPECT_EQ(all.threads, std::vector{thread});
  EXPECT_EQ(all.op_sources, std::vector{source});
  EXPECT_EQ(all.source_files, std::vector{file});
  EXPECT_EQ(all.source_lines, lines);
}

// What differs by one and the same step needs no bytes as a delta, and a table may not have fewer bytes than rows.
TEST_F(RoundTrip, EvenlySpacedEntriesAreReadable) {
  constexpr std::uint64_t kEntries = 5000;  // more than one table
  Writer writer = create();
  const PoolId pool = writer.pool({writer.string("p"), 0, Level::driver, Memory::device, Framework::cuda});
  const StringId file = writer.string("train.py");
  for (std::uint64_t i = 1; i <= kEntries; ++i) {
    writer.site({.pool = pool, .requested = 256 * i});
    writer.thread({i, {}});
    const FrameId frame = writer.frame({{}, file, i, 0, {}});
    writer.stack(i, std::vector{frame});
    writer.op_source({{}, file, i, {}, {}});
    writer.source_line({file, i, {}});
  }
  ASSERT_TRUE(writer.finish());

  const Reader reader = open();
  EXPECT_EQ(reader.damage().message, "");
  const Dictionaries& all = reader.dictionaries();
  ASSERT_EQ(all.sites.size(), kEntries);
  EXPECT_EQ(all.sites.back().requested, 256 * kEntries);
  ASSERT_EQ(all.threads.size(), kEntries);
  EXPECT_EQ(all.threads.back().tid, kEntries);
  EXPECT_EQ(all.frames.size(), kEntries);
  EXPECT_EQ(all.stacks.size(), kEntries + 1);
  EXPECT_EQ(all.op_sources.size(), kEntries);
  ASSERT_EQ(all.source_lines.size(), kEntries);
  EXPECT_EQ(all.source_lines.back(), (SourceLine{file, kEntries, {}}));
}

TEST_F(RoundTrip, EveryKindOfReportComesBackInOrder) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  Writer writer = create();
  const auto s = [&](std::string_view text) { return writer.string(text); };
  const std::vector<Report> reports = {
      VariableOp{s("op"), OpRole::value, Category::workspace, s("größe")},
      HeldTensors{s("n"), s("list"), s("o"), s("Größe.py"), 1, 2, kHuge, 4},
      PersistentTape{s("Größe.py"), kHuge, 3},
      Retrace{s("f"), s("r"), s("Größe.py"), 1, kHuge},
      BakedConstant{s("op"), s("f"), s("[2,3]"), s("float32"), s("Größe.py"), 1, kHuge, 3},
      Float64Variable{s("v"), s("Größe.py"), 1, kHuge},
      DatasetOnDevice{s("GPU:0"), s("Größe.py"), 1, kHuge},
      CachedDataset{s("Größe.py"), 1, 2, kHuge},
      TracedGraph{s("f"), s("Größe.py"), 1, 2, 3, 4, kHuge},
      DatasetStage{s("op"), s("Größe.py"), 1, 2, 3, kHuge},
      StageBuffer{s("op"), 1, 2, kHuge},
      Float64Enters{s("Größe.py"), 1, kHuge},
      HostLine{s("numpy"), s("Größe.py"), 1, 2, 3, kHuge},
      PoolLimit{1, kHuge},
      BuiltLayers{s("Größe.py"), 1, 2, kHuge},
      ProgramPlan{s("f"), s("Größe.py"), 1, 2, 3, 4, kHuge},
      StateNotDonated{s("f"), s("a"), s("Größe.py"), 1, kHuge},
      DonationFailed{s("f"), s("a"), s("r"), s("Größe.py"), 1, kHuge},
      ReplicatedArguments{s("f"), s("a"), Category::input, s("Größe.py"), 1, 2, 3, kHuge},
  };
  ASSERT_EQ(reports.size(), std::variant_size_v<Report>) << "a new kind needs its row here";
  std::uint64_t seq = 0;
  for (const Report& report : reports) writer.append({++seq, 10 * seq, {}}, report);
  ASSERT_TRUE(writer.finish());

  const Reader reader = open();
  const auto chunk = reader.chunk(0);
  ASSERT_TRUE(chunk) << chunk.error().message;
  ASSERT_EQ(chunk->kind.size(), reports.size());
  for (std::size_t i = 0; i < reports.size(); ++i) EXPECT_EQ(report_at(chunk->tables, chunk->kind[i], 0), reports[i]) << i;
  EXPECT_EQ(report_at(chunk->tables, EventKind::setting, 0), std::nullopt);
  EXPECT_EQ(reader.dictionaries().strings.at(std::to_underlying(std::get<PersistentTape>(reports[2]).file)), "Größe.py");
}

// Every other event kind with values at the edges of its types. Long, because each kind has its line: written, then read.
TEST_F(RoundTrip, EveryKindOfEventComesBackInOrder) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  Writer writer = create();
  const PoolId pool = writer.pool({writer.string("p"), -1, Level::driver, Memory::pinned, Framework::cuda});
  const SiteId site = writer.site({.pool = pool, .requested = kHuge});
  const ThreadId thread = writer.thread({1, {}});
  const StringId name = writer.string("n");
  std::uint64_t seq = 5;
  const auto at = [&] { return At{seq += 3, 1000 - seq, thread}; };
  EXPECT_EQ(writer.alloc(at(), {site, kHuge, 0, kLow}), 0u);
  EXPECT_EQ(writer.free(at(), pool, kHuge, kHuge), 0u);
  EXPECT_EQ(writer.free(at(), pool, kHuge, 1), kNone);
  const Region region{pool, kHuge, 1, true};
  const Mark mark{MarkKind::retrace, MarkEdge::end, name, kLow, name};
  const Tag tag{1, kHuge, Category::workspace, name, name};
  const Stats stats{pool, 1, kHuge, 3, 4, 5, 6};
  const Oom oom{site, kLow, true, 1, 2, kHuge, 4};
  const DeviceSample device{-1, 1, 2, 3, 4, kHuge, 6};
  const HostSample host{kHuge, 0};
  const Setting setting{name, name};
  const Lost lost{LossKind::trace_write, kHuge};
  const Context context{3, kHuge, 2, 1};
  const Totals totals{pool, 1, 2, 3, 4, 5, 6, 7, true, kHuge};
  writer.append(at(), region);
  writer.append(at(), mark);
  writer.append(at(), tag);
  writer.append(at(), stats);
  writer.append(at(), oom);
  writer.append(at(), device);
  writer.append(at(), host);
  writer.append(at(), setting);
  writer.append(at(), lost);
  writer.append(at(), context);
  writer.append(at(), totals);
  ASSERT_TRUE(writer.finish());

  const Reader reader = open();
  ASSERT_EQ(reader.chunks(), 1u);
  const auto chunk = reader.chunk(0);
  ASSERT_TRUE(chunk) << chunk.error().message;
  const Tables& tables = chunk->tables;
  const std::vector kinds = {EventKind::alloc,         EventKind::free_,       EventKind::free_,   EventKind::region,
                             EventKind::mark,          EventKind::tag,         EventKind::stats,   EventKind::oom,
                             EventKind::device_sample, EventKind::host_sample, EventKind::setting, EventKind::lost,
                             EventKind::context,       EventKind::totals};
  EXPECT_EQ(chunk->kind, kinds);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(chunk->seq[i], 8 + 3 * i);
    EXPECT_EQ(chunk->time_us[i], 1000 - chunk->seq[i]);
    EXPECT_EQ(chunk->thread[i], thread);
  }
  EXPECT_EQ(tables.alloc.row(0), (Alloc{site, kHuge, 0, 1}));
  EXPECT_EQ(tables.free.row(0), (Free{0, 0, {}, kHuge}));
  EXPECT_EQ(tables.free.row(1), (Free{kNone, kHuge, pool, 1}));
  EXPECT_EQ(tables.region.row(0), region);
  EXPECT_EQ(tables.mark.row(0), mark);
  EXPECT_EQ(tables.tag.row(0), tag);
  EXPECT_EQ(tables.stats.row(0), stats);
  EXPECT_EQ(tables.oom.row(0), (Oom{site, 1, true, 1, 2, kHuge, 4}));  // the same run
  EXPECT_EQ(tables.device_sample.row(0), device);
  EXPECT_EQ(tables.host_sample.row(0), host);
  EXPECT_EQ(tables.setting.row(0), setting);
  EXPECT_EQ(tables.lost.row(0), lost);
  EXPECT_EQ(tables.context.row(0), context);
  EXPECT_EQ(tables.totals.row(0), totals);
}

struct WrittenEvent {
  EventKind kind;
  At at;
  Alloc alloc;
  std::uint64_t freed;
};

// Allocations and frees at random, some of them at addresses that were freed before.
class RandomEvents {
 public:
  explicit RandomEvents(Writer& writer)
      : writer_(writer), pool_(writer.pool({writer.string("p"), 0, Level::tensor, Memory::device, Framework::pytorch})) {
    for (std::uint64_t i = 0; i < 3000; ++i) {
      sites_.push_back(
          writer.site({.pool = pool_, .requested = random_() % 100000, .op = writer.string("op" + std::to_string(i))}));
    }
    for (std::uint64_t i = 0; i < 5; ++i) threads_.push_back(writer.thread({i, {}}));
  }

  void write(std::uint64_t number) {
    const At at{number * 2, number / 3, threads_[random_() % threads_.size()]};
    if (live_.size() > 100 && random_() % 2 == 0)
      free(at);
    else
      alloc(at);
  }

  const std::vector<WrittenEvent>& written() const { return written_; }

 private:
  struct Block {
    std::uint64_t address, granted, ordinal;
  };

  void free(const At& at) {
    const std::size_t pick = random_() % live_.size();
    EXPECT_EQ(writer_.free(at, pool_, live_[pick].address, 0), live_[pick].ordinal);
    written_.push_back({EventKind::free_, at, {}, live_[pick].ordinal});
    freed_.push_back(live_[pick]);
    live_[pick] = live_.back();
    live_.pop_back();
  }

  void alloc(const At& at) {
    Alloc alloc{sites_[random_() % sites_.size()], address_ += 256 * (random_() % 9 + 1), random_() % 8 * 1000, 0};
    if (freed_.size() > 100 && random_() % 3 > 0) {  // handed out again: at once, later, and by chance with another size
      const auto again = freed_.end() - 1 - static_cast<std::ptrdiff_t>(random_() % 100);
      alloc.address = again->address;
      if (random_() % 8 > 0) alloc.granted = again->granted;
      freed_.erase(again);
    }
    live_.push_back({alloc.address, alloc.granted, writer_.alloc(at, alloc)});
    written_.push_back({EventKind::alloc, at, alloc, 0});
  }

  Writer& writer_;
  PoolId pool_;
  std::mt19937_64 random_{7};
  std::vector<SiteId> sites_;
  std::vector<ThreadId> threads_;
  std::vector<Block> live_, freed_;
  std::uint64_t address_ = 1 << 20;
  std::vector<WrittenEvent> written_;
};

void expect_read(const Reader& reader, const std::vector<WrittenEvent>& expected) {
  std::size_t next = 0;
  std::uint64_t allocs = 0;
  Chunk chunk;
  for (std::size_t c = 0; c < reader.chunks(); ++c) {
    ASSERT_TRUE(reader.read(c, chunk));
    EXPECT_EQ(chunk.first_event, next);
    EXPECT_EQ(chunk.first_alloc, allocs);
    std::size_t alloc_row = 0;
    std::size_t free_row = 0;
    for (std::size_t i = 0; i < chunk.kind.size(); ++i, ++next) {
      const WrittenEvent& event = expected[next];
      ASSERT_EQ(chunk.kind[i], event.kind);
      ASSERT_EQ(chunk.seq[i], event.at.seq);
      ASSERT_EQ(chunk.time_us[i], event.at.time_us);
      ASSERT_EQ(chunk.thread[i], event.at.thread);
      if (event.kind == EventKind::alloc) {
        ASSERT_EQ(chunk.tables.alloc.row(alloc_row++), event.alloc);
      } else {
        ASSERT_EQ(chunk.tables.free.alloc[free_row++], event.freed);
      }
    }
    allocs += alloc_row;
  }
  EXPECT_EQ(next, expected.size());
  EXPECT_EQ(reader.allocs(), allocs);
}

// Random allocations over several chunks, some flushed early, against a plain list of what was written.
TEST_F(RoundTrip, ManyChunksEqualAPlainList) {
  std::vector<WrittenEvent> expected;
  {
    Writer writer = create();
    RandomEvents events(writer);
    for (std::uint64_t i = 0; i < 200000; ++i) {
      events.write(i);
      if (i % 70001 == 0) {
        ASSERT_TRUE(writer.flush());
      }
    }
    expected = events.written();
    EXPECT_EQ(writer.events(), expected.size());
    ASSERT_TRUE(writer.finish());
    EXPECT_EQ(writer.bytes(), fs::file_size(path_));
  }
  const Reader reader = open();
  EXPECT_EQ(reader.events(), expected.size());
  EXPECT_GT(reader.chunks(), 3u);
  expect_read(reader, expected);
}

// Its free was lost: the block cannot be live any more when its address is handed out again.
TEST_F(RoundTrip, AnAddressThatIsGivenAgainEndsTheBlockBefore) {
  {
    Writer writer = create();
    const PoolId pool = writer.pool({.device = 0});
    const PoolId other = writer.pool({.device = 1});
    const SiteId site = writer.site({.pool = pool, .requested = 8});
    writer.alloc({1, 1, {}}, {site, 4096, 256, 0});
    writer.alloc({2, 2, {}}, {writer.site({.pool = other, .requested = 8}), 4096, 256, 0});
    EXPECT_EQ(writer.alloc({7, 7, {}}, {site, 4096, 512, 0}), 2u);
    EXPECT_EQ(writer.free({8, 8, {}}, pool, 4096, 0), 2u);
    ASSERT_TRUE(writer.finish());
  }
  const auto chunk = open().chunk(0);
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->kind, (std::vector{EventKind::alloc, EventKind::alloc, EventKind::free_, EventKind::alloc, EventKind::free_}));
  EXPECT_EQ(chunk->tables.free.alloc, (std::vector<std::uint64_t>{0, 2}));
  EXPECT_EQ(chunk->seq[2], 7u);
}

// A framework draws the ids of its function runs at random, which costs eight bytes each and says nothing.
TEST_F(RoundTrip, FunctionRunsAreNumberedByFirstAppearance) {
  const std::vector<std::int64_t> drawn = {0, 8123456789012345678, -5, -5, 8123456789012345678, 0, 77};
  {
    Writer writer = create();
    const SiteId site = writer.site({.pool = writer.pool({}), .requested = 8});
    for (std::uint64_t i = 0; i < drawn.size(); ++i) writer.alloc({i, i, {}}, {site, 256 * i, 256, drawn[i]});
    ASSERT_TRUE(writer.finish());
  }
  EXPECT_EQ(open().chunk(0)->tables.alloc.step, (std::vector<std::int64_t>{0, 1, 2, 2, 1, 0, 3}));
}

TEST_F(RoundTrip, AnUnfinishedFileIsReadUpToItsLastFlush) {
  Writer writer = create();
  const SiteId site =
      writer.site({.pool = writer.pool({writer.string("p"), 0, Level::tensor, Memory::device, Framework::none}), .requested = 8});
  writer.alloc({1, 1, {}}, {site, 256, 256, 0});
  ASSERT_TRUE(writer.flush());
  writer.alloc({2, 2, {}}, {site, 512, 256, 0});
  const Reader reader = open();
  EXPECT_TRUE(reader.damage().truncated);
  EXPECT_EQ(reader.damage().message, "");
  EXPECT_EQ(reader.events(), 1u);
}

TEST_F(RoundTrip, ManyThreadsReadAtOnce) {
  {
    Writer writer = create();
    const SiteId site = writer.site({.pool = writer.pool({}), .requested = 8});
    for (std::uint64_t i = 0; i < 3000; ++i) {
      writer.alloc({i, i, {}}, {site, 256 * i, 256, 0});
      if (i % 100 == 99) {
        ASSERT_TRUE(writer.flush());
      }
    }
    ASSERT_TRUE(writer.finish());
  }
  const Reader reader = open();
  std::vector<std::uint64_t> sums(4);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t& sum : sums) {
      threads.emplace_back([&] {
        for (std::size_t c = 0; c < reader.chunks(); ++c) {
          const auto chunk = reader.chunk(c);
          for (std::size_t i = 0; chunk && i < chunk->kind.size(); ++i) sum += chunk->tables.alloc.address[i];
        }
      });
    }
  }
  EXPECT_EQ(sums, std::vector<std::uint64_t>(4, std::uint64_t{256} * 3000 * 2999 / 2));
}

TEST_F(RoundTrip, AnExistingFileIsNeverOverwritten) {
  ASSERT_TRUE(create().finish());
  const auto again = Writer::create(path_, {});
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("File exists"), std::string::npos) << again.error().message;
}

}  // namespace
}  // namespace vramscope::trace
