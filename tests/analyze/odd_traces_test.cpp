// Traces that lack something: a clear answer or a clear error, never a crash.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "analyze/api.h"
#include "ask_everything.h"
#include "maker.h"
#include "trace/writer.h"
#include "training.h"

namespace vramscope {
namespace {

using namespace analyze;
namespace fs = std::filesystem;

class OddTraces : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("vs-odd-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    path_ = folder_ / "run.vram";
  }
  void TearDown() override { fs::remove_all(folder_); }

  Engine open() { return Engine::open(path_).value(); }
  fs::path folder_, path_;
};

TEST_F(OddTraces, Empty) {
  ASSERT_TRUE(tracegen::Maker::create(path_, {})->finish());
  Engine e = open();
  test::ask_everything(e);
  EXPECT_EQ(e.overview().allocs, 0u);
}

// The same trace twice, the second time with frees that are known to be lost: what looks like a leak may be none.
TEST_F(OddTraces, LostEventsLeaveNoVerdictOnLeaks) {
  for (const bool lost : {false, true}) {
    path_ = folder_ / (lost ? "lost.vram" : "whole.vram");
    trace::Writer writer = trace::Writer::create(path_, {}).value();
    const trace::PoolId pool = writer.pool({writer.string("GPU_0_bfc"), 0, trace::Level::tensor, trace::Memory::device});
    const trace::SiteId site = writer.site({.pool = pool, .requested = 4096, .op = writer.string("Relu")});
    std::uint64_t seq = 0;
    const auto at = [&] { return trace::At{++seq, seq * 1000, {}}; };
    for (std::int64_t step = 1; step <= 40; ++step) {
      writer.append(at(), trace::Mark{trace::MarkKind::step, trace::MarkEdge::begin, {}, step, {}});
      writer.alloc(at(), {site, 1u << 20, 4096, step});
      writer.alloc(at(), {site, (2u << 20) + static_cast<std::uint64_t>(step) * 4096, 4096, step});
      writer.free(at(), pool, 1u << 20, 0);
      writer.append(at(), trace::Mark{trace::MarkKind::step, trace::MarkEdge::end, {}, step, {}});
    }
    writer.append(at(), trace::Totals{.pool = pool, .allocs = 80, .frees = 80, .live = 0, .peak = 8192, .largest = 4096});
    if (lost) writer.append(at(), trace::Lost{trace::LossKind::overwritten, 40});
    ASSERT_TRUE(writer.finish());
    Engine e = open();
    test::ask_everything(e);
    EXPECT_EQ(e.leaks()->verdict, lost ? "cannot tell" : "growing");
    EXPECT_EQ(e.overview().missing.empty(), !lost);
    if (lost) {
      EXPECT_EQ(e.overview().sentence, "The run needs at most 8.0 KiB on GPU 0.");
    }
  }
}

TEST_F(OddTraces, OneEvent) {
  auto maker = tracegen::Maker::create(path_, {}).value();
  maker.alloc({"Relu", "output", 1024});
  ASSERT_TRUE(maker.finish());
  Engine e = open();
  test::ask_everything(e);
  EXPECT_EQ(e.places()[0].peak, 1024u);
  EXPECT_EQ(e.steps().source, "none");
  EXPECT_NE(e.steps().sentence.find("can be identified"), std::string::npos);
  EXPECT_EQ(e.leaks()->verdict, "cannot tell");
}

TEST_F(OddTraces, NoFrees) {
  auto maker = tracegen::Maker::create(path_, {}).value();
  for (int i = 0; i < 5000; ++i) maker.alloc({"Relu", "output", 512});
  ASSERT_TRUE(maker.finish());
  Engine e = open();
  test::ask_everything(e);
  EXPECT_EQ(e.places()[0].peak, 5000u * 512);
}

TEST_F(OddTraces, AMillionLiveBlocks) {
  auto maker = tracegen::Maker::create(path_, {}).value();
  for (int i = 0; i < 1'000'000; ++i) maker.alloc({i % 2 == 0 ? "Relu" : "Add", "output", 256});
  ASSERT_TRUE(maker.finish());
  Engine e = open();
  Live live = e.live({"end", {By::op}, "", -1, 5}).value();
  EXPECT_EQ(live.count, 1'000'000u);
  EXPECT_EQ(live.groups.size(), 2u);
  EXPECT_EQ(live.groups[0].bytes, 128'000'000u);
}

TEST_F(OddTraces, Truncated) {
  tracegen::Training t;
  t.layers = 20;
  t.steps = 200;
  ASSERT_TRUE(tracegen::write_training(path_, t));
  auto size = fs::file_size(path_);
  for (std::uintmax_t keep : {size - 1, size / 2, size / 10, std::uintmax_t{100}, std::uintmax_t{10}, std::uintmax_t{0}}) {
    fs::resize_file(path_, keep);
    auto e = Engine::open(path_);
    if (e) {
      test::ask_everything(*e);
    } else {
      EXPECT_FALSE(e.error().message.empty());
    }
  }
}

TEST_F(OddTraces, Damaged) {
  tracegen::Training t;
  t.layers = 30;
  t.steps = 300;
  ASSERT_TRUE(tracegen::write_training(path_, t));
  auto size = static_cast<std::streamoff>(fs::file_size(path_));
  for (int i = 1; i < 12; ++i) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(size * i / 12);
    file.write("\xff\x00\xa5\x5a", 4);
    file.close();
    auto e = Engine::open(path_);
    if (e) {
      test::ask_everything(*e);
    } else {
      EXPECT_FALSE(e.error().message.empty());
    }
  }
}

TEST_F(OddTraces, NotATrace) {
  std::ofstream(path_) << "hello";
  auto e = Engine::open(path_);
  ASSERT_FALSE(e);
  EXPECT_NE(e.error().message.find("run.vram"), std::string::npos);
  EXPECT_FALSE(Engine::open(folder_ / "nothing.vram"));
}

TEST_F(OddTraces, SeveralProcesses) {
  for (const char* name : {"a.vram", "b.vram"}) ASSERT_TRUE(tracegen::write_training(folder_ / name, {}));
  auto traces = traces_in(folder_).value();
  EXPECT_EQ(traces.size(), 2u);
  EXPECT_FALSE(traces_in(folder_ / "nothing"));
}

}  // namespace
}  // namespace vramscope
