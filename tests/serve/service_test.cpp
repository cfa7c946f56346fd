// The requests of the page on traces whose truth is known.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include "forged.h"
#include "serve/answer_parts.h"
#include "serve/engine_service.h"
#include "serve/report.h"
#include "support/gzip.h"
#include "support/units.h"
#include "trace/writer.h"
#include "training.h"

namespace {
std::atomic<std::int64_t> g_jump_s = 0;  // that the clock makes at each reading
std::atomic<std::int64_t> g_jumped_s = 0;
}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, out));
  g_jumped_s += g_jump_s;
  out->tv_sec += g_jumped_s;
  return result;
}

namespace vramscope::serve {

namespace {

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("vramscope-serve-{}", getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  tracegen::Truth make(const std::string& name, const tracegen::Training& program) {
    const auto path = folder_ / name;
    const auto truth = tracegen::write_training(path, program);
    EXPECT_TRUE(truth) << truth.error().message;
    paths_.push_back(path.string());
    return *truth;
  }
  void open() {
    auto library = Library::open(paths_, false);
    ASSERT_TRUE(library) << library.error().message;
    library_ = std::move(*library);
    service_ = std::make_unique<EngineService>(library_);
  }

  std::filesystem::path folder_;
  std::vector<std::string> paths_;
  std::shared_ptr<Library> library_;
  std::unique_ptr<EngineService> service_;
};

double total_of(const std::vector<Share>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0, [](double sum, const Share& share) { return sum + share.bytes; });
}

TEST_F(ServiceTest, EveryViewAgreesWithTheTruth) {
  tracegen::Training program;
  program.autotune_bytes = 64u << 20;
  program.steps = 12;
  const auto truth = make("a.vram", program);
  open();
  const auto hello = service_->hello({});
  ASSERT_TRUE(hello);
  ASSERT_EQ(hello->traces.size(), 1U);
  EXPECT_EQ(hello->traces[0].peak, truth.peak);
  EXPECT_EQ(hello->traces[0].steady_peak, truth.steady_peak);
  EXPECT_EQ(hello->traces[0].steps, 12U);
  for (const auto& [at, bytes] : {std::pair{"peak", truth.peak}, {"steady", truth.steady_peak}, {"end", truth.end}}) {
    const auto instant = service_->instant({.trace = 0, .at = at});
    ASSERT_TRUE(instant) << instant.error().message;
    EXPECT_EQ(instant->total, static_cast<double>(bytes)) << at;
    EXPECT_EQ(total_of(instant->shares), static_cast<double>(bytes)) << at;
    const auto peak = service_->peak({.trace = 0, .at = at});
    ASSERT_TRUE(peak);
    double roots = 0, rows = peak->more_bytes;
    for (const TreeNode& node : peak->nodes) roots += node.depth == 0 ? node.bytes : 0;
    for (const BlockRow& row : peak->rows) rows += row.bytes;
    EXPECT_EQ(roots, static_cast<double>(bytes)) << at;
    EXPECT_EQ(rows, static_cast<double>(bytes)) << at;
    const auto map = service_->map({.trace = 0, .at = at});
    ASSERT_TRUE(map);
    EXPECT_EQ(std::accumulate(map->bytes.begin(), map->bytes.end(), 0.0), static_cast<double>(bytes)) << at;
  }
  const auto steps = service_->steps({.trace = 0});
  ASSERT_TRUE(steps);
  for (std::size_t i = 0; i < truth.step_peak.size(); ++i) {
    EXPECT_EQ(steps->peak[i], static_cast<double>(truth.step_peak[i]));
    double stacked = 0;
    for (std::size_t c = 0; c < steps->categories.size(); ++c) stacked += steps->stack[c * steps->number.size() + i];
    EXPECT_EQ(stacked, steps->peak[i]) << "step " << i;
  }
}

TEST_F(ServiceTest, TilesOfEveryLevelHoldTheSamePeak) {
  const auto truth = make("a.vram", {});
  open();
  const std::uint64_t duration = (*library_->trace(0))->overview().duration_us;
  for (const char* by : {"category", "layer", "op"})
    for (std::uint64_t level = kLowestLevel; level <= 20; ++level) {
      double highest = 0;
      for (std::uint64_t tile = 0; (tile << level) <= duration; ++tile) {
        const auto stack = service_->stack({.trace = 0, .by = by, .level = level, .tile = tile});
        ASSERT_TRUE(stack) << stack.error().message;
        const std::size_t columns = stack->t.empty() ? 0 : stack->t.size() - 1;
        ASSERT_EQ(stack->bytes.size(), columns * stack->groups.size());
        for (std::size_t i = 0; i < columns; ++i) {
          double sum = 0;
          for (std::size_t g = 0; g < stack->groups.size(); ++g) sum += stack->bytes[g * columns + i];
          highest = std::max(highest, sum);
        }
      }
      EXPECT_EQ(highest, static_cast<double>(truth.peak)) << by << " level " << level;
    }
}

TEST_F(ServiceTest, ARangeSaysWhatCameAndWent) {
  make("a.vram", {});
  open();
  const auto duration = static_cast<double>((*library_->trace(0))->overview().duration_us);
  const auto range = service_->range({.trace = 0, .t0 = 0, .t1 = duration});
  ASSERT_TRUE(range) << range.error().message;
  const auto end = service_->instant({.trace = 0, .at = "end"});
  ASSERT_TRUE(end);
  EXPECT_EQ(range->change, end->total);
  EXPECT_EQ(range->allocated - range->freed, range->change);
  EXPECT_FALSE(service_->range({.trace = 0, .t0 = 5, .t1 = 5}));
}

TEST_F(ServiceTest, LeaksAndFailuresAreWhatWasMade) {
  tracegen::Training leaking;
  leaking.leak_bytes = 64u << 10;
  make("leak.vram", leaking);
  tracegen::Training failing;
  failing.maker.pool.limit = 6u << 20;
  const auto failed = make("oom.vram", failing);
  open();
  ASSERT_TRUE(failed.out_of_memory);
  EXPECT_EQ(service_->leaks({.trace = 0})->verdict, "growing");
  ASSERT_EQ(service_->ooms({.trace = 1})->ooms.size(), 1U);
  const auto diff = service_->diff({.a = 0, .b = 1, .at = "peak", .by = "layer"});
  ASSERT_TRUE(diff) << diff.error().message;
  EXPECT_FALSE(diff->rows.empty());
}

// Whatever text a request holds: an answer or one sentence, never a crash.
TEST_F(ServiceTest, NonsenseIsAnsweredWithASentence) {
  make("a.vram", {});
  open();
  std::mt19937 random(1);
  const std::vector<std::string> words = {"",
                                          "0",
                                          "1",
                                          "-1",
                                          "99999999999999999999",
                                          "1e300",
                                          "nan",
                                          "peak",
                                          "steady",
                                          "moment:18446744073709551615",
                                          "step:-5",
                                          "oom:0",
                                          "/etc/passwd",
                                          "layer:(",
                                          "category",
                                          "((((((((",
                                          "op:/[/",
                                          std::string(3000, 'x'),
                                          "\xff\xfe",
                                          "next-event",
                                          "next-peak",
                                          "previous-step",
                                          "30",
                                          "1023"};
  const auto pick = [&] { return words[random() % words.size()]; };
  for (int i = 0; i < 4000; ++i) {
    static const char* const names[] = {"hello", "overview", "steps", "stack", "tracks", "marks", "instant", "range",  "place",
                                        "peak",  "layers",   "leaks", "map",   "block",  "ooms",  "diff",    "source", "suggest"};
    Params params;
    for (const char* field : {"trace", "by", "filter", "level", "tile", "at", "t0", "t1", "moment", "go", "open", "pool", "id",
                              "a", "b", "file", "text"})
      if (random() % 3 != 0) params[field] = random() % 2 != 0 ? pick() : "0";
    const auto answer = dispatch(*service_, names[random() % std::size(names)], params);
    if (!answer) {
      EXPECT_FALSE(answer.error().message.empty());
      EXPECT_EQ(answer.error().message.find('\n'), std::string::npos);
    }
  }
}

// Whether it takes a second or an hour.
TEST_F(ServiceTest, AReportIsTheSameHoweverLongItTakes) {
  tracegen::Training program;
  program.steps = 300;
  make("a.vram", program);
  open();
  const auto report = make_report(library_, {});
  if (!report) GTEST_SKIP() << report.error().message;  // built without the user interface
  const auto before = std::chrono::steady_clock::now();
  g_jump_s = 3600;
  const auto slow = make_report(library_, {});
  EXPECT_GT(std::chrono::steady_clock::now() - before, std::chrono::hours(1)) << "the clock of the test is not the program's";
  g_jump_s = 0;
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->answers, report->answers);
  EXPECT_TRUE(slow->html == report->html);
}

TEST_F(ServiceTest, AReportHoldsItsBudget) {
  tracegen::Training program;
  program.steps = 200;
  make("a.vram", program);
  open();
  const auto report = make_report(library_, {.budget = 700'000});
  if (!report) GTEST_SKIP() << report.error().message;  // built without the user interface
  EXPECT_LE(report->html.size(), 700'000U);
  EXPECT_GT(report->answers, 20U);
  EXPECT_FALSE(make_report(library_, {.budget = 1000}));
}

// A file of a few hundred bytes can have a million live blocks at each of thousands of instants.
TEST_F(ServiceTest, AReportHoldsItsBudgetOfWork) {
  const auto path = folder_ / "busy.vram";
  ASSERT_TRUE(tracegen::write_forged("busytimeline", path));
  paths_.push_back(path.string());
  open();
  constexpr std::uint64_t kWork = 40'000'000, kBlocks = 16u << 16;
  const auto report = make_report(library_, {.most_work = kWork});
  if (!report) GTEST_SKIP() << report.error().message;  // built without the user interface
  EXPECT_LE(report->work, kWork + 20 * kBlocks);        // the last answer is finished
  EXPECT_GT(report->work, kWork / 2);
  EXPECT_GT(report->left_out, 0u);
  EXPECT_GT(report->answers, 20U);
}

// The tiles of the time axis end before the numbers do.
TEST_F(ServiceTest, AReportOfATraceThatClaimsToLastForEver) {
  for (const std::uint64_t end : {std::uint64_t{1} << 51, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    const auto path = folder_ / fmt::format("{}.vram", end);
    auto writer = trace::Writer::create(path, {});
    ASSERT_TRUE(writer);
    const auto pool = writer->pool({writer->string("p"), 0, trace::Level::tensor, trace::Memory::device, trace::Framework::none});
    const auto site = writer->site({.pool = pool, .requested = 256});
    writer->alloc({1, 0, {}}, {site, 0x1000, 256, 0});
    writer->alloc({2, end, {}}, {site, 0x2000, 256, 0});
    ASSERT_TRUE(writer->finish());
    auto library = Library::open({path.string()}, false);
    ASSERT_TRUE(library) << library.error().message;
    const auto report = make_report(std::move(*library), {});
    if (!report) GTEST_SKIP() << report.error().message;  // built without the user interface
    EXPECT_GT(report->answers, 5U);
  }
}

// What is live is drawn, however many blocks there are: what is left out would look free.
TEST_F(ServiceTest, APoolOfVeryManyBlocksIsDrawnWhole) {
  const auto path = folder_ / "many.vram";
  auto maker = tracegen::Maker::create(path, {});
  ASSERT_TRUE(maker);
  constexpr std::size_t kBlocks = 150'000;
  std::vector<tracegen::Handle> some;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const auto block = maker->alloc({i % 2 == 0 ? "Relu" : "Add", "output", 256});
    ASSERT_TRUE(block);
    if (i >= 1000 && i < 3000) some.push_back(*block);  // one hole of 500 KiB
  }
  for (const auto& block : some) maker->free(block);
  ASSERT_TRUE(maker->finish());
  paths_.push_back(path.string());
  open();
  const auto map = service_->map({.trace = 0, .at = "end"});
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_LT(map->id.size(), 60'001U);
  EXPECT_EQ(std::accumulate(map->count.begin(), map->count.end(), 0.0), static_cast<double>(kBlocks - some.size()));
  std::vector<double> drawn(map->regions.size(), 0);
  for (std::size_t i = 0; i < map->id.size(); ++i) drawn[static_cast<std::size_t>(map->region[i])] += map->bytes[i];
  for (std::size_t r = 0; r < drawn.size(); ++r)
    EXPECT_NEAR(drawn[r], map->regions[r].live, map->line_bytes / 512) << "region " << r;
}

TEST_F(ServiceTest, TheHistoryOfAPoolFallsBetweenSteps) {
  tracegen::Training program;
  program.steps = 6;
  make("a.vram", program);
  open();
  const auto map = service_->map({.trace = 0, .at = "steady"});
  ASSERT_TRUE(map);
  const auto steps = service_->steps({.trace = 0});
  ASSERT_TRUE(steps);
  const auto lowest = [&](double t0, double t1) {
    double low = 1e18;
    for (std::size_t i = 0; i < map->history_t.size(); ++i)
      if (map->history_t[i] >= t0 && map->history_t[i] < t1) low = std::min(low, map->history_live[i]);
    return low;
  };
  EXPECT_LT(lowest(steps->t0[3], steps->t1[3]), steps->peak[3] / 2);
}

TEST_F(ServiceTest, ADiffSaysWhatIsNotKnownAndAddsUp) {
  tracegen::Training program;
  program.autotune_bytes = 64u << 20;
  make("a.vram", program);
  const auto path = folder_ / "b.vram";
  auto maker = tracegen::Maker::create(path, {});
  ASSERT_TRUE(maker);
  ASSERT_TRUE(maker->alloc({"Relu", "output", 1024}));
  ASSERT_TRUE(maker->finish());
  paths_.push_back(path.string());
  program.layers = 9;
  make("c.vram", program);
  open();
  const auto steps_unknown = service_->diff({.a = 0, .b = 1, .at = "steady"});
  ASSERT_TRUE(steps_unknown);
  for (const DiffFigure& figure : steps_unknown->figures) {
    const bool of_steps = figure.name != "Peak" && figure.name != "Pool";
    EXPECT_TRUE(figure.a) << figure.name;
    EXPECT_EQ(figure.b.has_value(), !of_steps) << figure.name;
    EXPECT_EQ(figure.change.has_value(), !of_steps) << figure.name;
  }
  for (const auto& [b, at] : {std::pair{1, "steady"}, {1, "peak"}, {2, "steady"}, {2, "peak"}, {2, "same"}}) {
    const auto diff = service_->diff({.a = 0, .b = static_cast<std::uint64_t>(b), .at = at});
    ASSERT_TRUE(diff);
    double sum_a = 0, sum_b = 0;
    for (const DiffRow& row : diff->rows) {
      sum_a += row.a;
      sum_b += row.b;
    }
    EXPECT_EQ(sum_a, diff->total.a) << at << b;
    EXPECT_EQ(sum_b, diff->total.b) << at << b;
    const double change = std::abs(diff->total.change);
    EXPECT_NE(diff->sentence.find(support::format_size(static_cast<analyze::Bytes>(change))), std::string::npos)
        << diff->sentence << at;
  }
}

// `run --live` looks once more when the command has ended, while the page's own thread may be looking.
TEST_F(ServiceTest, TwoThreadsThatRefreshAddEachFileOnce) {
  make("0.vram", {});
  auto opened = Library::open({folder_.string()}, true);
  ASSERT_TRUE(opened) << opened.error().message;
  Library& library = **opened;
  for (std::size_t round = 1; round <= 20; ++round) {
    std::filesystem::copy_file(folder_ / "0.vram", folder_ / fmt::format("{}.vram", round));
    std::thread other([&] { library.refresh(); });
    library.refresh();
    other.join();
    ASSERT_EQ(library.size(), round + 1);
  }
}

}  // namespace

}  // namespace vramscope::serve
