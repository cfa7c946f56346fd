#include "cli/top/frame.h"

#include <gtest/gtest.h>

#include <set>

namespace vramscope::cli::top {

namespace {

constexpr Bytes kMiB = 1024 * 1024;

Process recorded(std::uint32_t pid, const char* command, Bytes live, Bytes peak) {
  Process process;
  process.pid = pid;
  process.command = command;
  process.framework = "TensorFlow";
  process.recorded = true;
  process.gpu = 0;
  process.device = 2679 * kMiB;
  process.pool = 2050 * kMiB;
  process.live = live;
  process.peak = peak;
  process.history = {{1'000'000, live / 2}, {59'000'000, live}};
  return process;
}

State two_processes() {
  State state;
  state.time_us = 60'000'000;
  Gpu gpu;
  gpu.name = "NVIDIA H200";
  gpu.used = 110000 * kMiB;
  gpu.total = 143771 * kMiB;
  gpu.live = 139 * kMiB;
  gpu.pool = 2050 * kMiB;
  gpu.recorded = 2679 * kMiB;
  state.gpus.push_back(gpu);
  state.processes.push_back(recorded(702, "train.py", 139 * kMiB, 768 * kMiB));
  Process other;
  other.pid = 9120;
  other.command = "serve.py";
  other.gpu = 0;
  other.device = 107828 * kMiB;
  state.processes.push_back(other);
  return state;
}

std::string picture(const State& state, const View& view, int width = 150, int height = 40) {
  return draw(state, view, width, height).plain();
}

TEST(TopFrame, ShowsWhatIsKnownAndADashForTheRest) {
  const std::string text = picture(two_processes(), {});
  EXPECT_NE(text.find("GPU 0"), std::string::npos);
  EXPECT_NE(text.find("110,000.0 of 143,771"), std::string::npos) << text;
  EXPECT_NE(text.find("76.5 %"), std::string::npos);
  EXPECT_NE(text.find("139.0"), std::string::npos);
  EXPECT_NE(text.find("768.0"), std::string::npos);
  EXPECT_NE(text.find("not recorded"), std::string::npos);
  EXPECT_NE(text.find("–"), std::string::npos);
  EXPECT_NE(text.find("Start it with 'vramscope run'"), std::string::npos);
  EXPECT_NE(text.find("2 processes, 1 recorded"), std::string::npos);
}

TEST(TopFrame, SortsByTheDeviceAndByOtherThings) {
  View view;
  EXPECT_EQ(shown_processes(two_processes(), view)[0].pid, 9120U);
  view.sort = "live";
  EXPECT_EQ(shown_processes(two_processes(), view)[0].pid, 702U);
  view.sort = "pid";
  EXPECT_EQ(shown_processes(two_processes(), view)[0].pid, 702U);
}

TEST(TopFrame, Filters) {
  View view;
  view.filter = "train";
  ASSERT_EQ(shown_processes(two_processes(), view).size(), 1U);
  view.filter = "nothing";
  EXPECT_NE(picture(two_processes(), view).find("No process matches the filter"), std::string::npos);
}

TEST(TopFrame, DropsColumnsAndNeverLeavesTheScreen) {
  for (const int width : {20, 60, 80, 120, 200})
    for (const int height : {3, 10, 24, 60}) {
      const Canvas canvas = draw(two_processes(), {}, width, height);
      EXPECT_EQ(canvas.width(), width);
      EXPECT_EQ(canvas.height(), height);
    }
  EXPECT_EQ(picture(two_processes(), {}, 80).find("FRAMEWORK"), std::string::npos);
  EXPECT_NE(picture(two_processes(), {}, 160).find("FRAMEWORK"), std::string::npos);
}

TEST(TopFrame, BarsResolveOnePercent) {
  State state = two_processes();
  state.gpus.resize(1);
  Gpu& gpu = state.gpus[0];
  gpu.total = std::uint64_t{100} << 30;
  gpu.pool = gpu.live = gpu.recorded = 0;
  std::set<std::string> bars;
  for (std::uint64_t percent = 1; percent <= 100; ++percent) {
    gpu.used = percent << 30;
    const Canvas canvas = draw(state, {}, 80, 24);
    std::string bar;
    for (int y = 0; y < canvas.height(); ++y)
      if (canvas.cell(1, y).text == "G" && canvas.cell(2, y).text == "P")
        for (int x = 55; x < 78; ++x) bar += canvas.cell(x, y).text;
    ASSERT_FALSE(bar.empty());
    bars.insert(bar);
  }
  EXPECT_EQ(bars.size(), 100U);
}

// The last character of a bar whose parts all end in it: its length is that of what is used.
TEST(TopFrame, SmallPartsDoNotMakeABarLonger) {
  State state = two_processes();
  Gpu& gpu = state.gpus[0];
  gpu.total = std::uint64_t{100} << 30;
  gpu.live = std::uint64_t{1} << 30;
  gpu.pool = 2 * gpu.live;
  gpu.recorded = gpu.used = 3 * gpu.live;
  const Canvas canvas = draw(state, {}, 80, 24);
  int gpu_row = 0;
  while (gpu_row < 24 && canvas.cell(1, gpu_row).text != "G") ++gpu_row;
  ASSERT_LT(gpu_row, 24);
  const ScreenCell& first = canvas.cell(55, gpu_row);
  EXPECT_EQ(first.text, "▊");  // 3 % of 23 characters are 5.5 eighths
  EXPECT_EQ(first.style.background, -1) << "nothing after the end of the bar";
}

TEST(TopFrame, AtEightyColumnsLegendUnitAndKeysAreWhole) {
  View view;
  view.host = "a-host-with-a-long-name.example";
  view.clock = "08:32:18";
  const std::string text = picture(two_processes(), view, 80, 24);
  for (const char* part : {"live", "free in the pool", "outside the pool", "not recorded", "MiB", "select", "? help", "q quit",
                           "Start it with 'vramscope run' to see inside its device memory."})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(TopFrame, HelpIsWholeAtEightyColumns) {
  View view;
  view.help = true;
  const std::string text = picture(two_processes(), view, 80, 24);
  for (const char* part :
       {"DEVICE: reported by the card.", "STEADY: peak of the steps after warm-up.", "space pause.", "No key affects a process."})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(TopFrame, RoundsAHalfUpAsEveryTableDoes) {
  State state = two_processes();
  state.processes[0].live = 7'602'176;  // 7.25 MiB
  EXPECT_NE(picture(state, {}, 120).find(" 7.3 "), std::string::npos);
}

TEST(TopFrame, GrowthOfAFewKilobytesIsNotZero) {
  State state = two_processes();
  state.processes[0].grows = true;
  state.processes[0].growth = 4096;
  const std::string text = picture(state, {}, 120);
  EXPECT_NE(text.find("<0.1"), std::string::npos) << text;
  EXPECT_EQ(text.find("+0.0"), std::string::npos) << text;
}

TEST(TopFrame, KeepsWhatTellsMostWhenThereIsLittleRoom) {
  const std::string wide = picture(two_processes(), {}, 120);
  EXPECT_NE(wide.find("PHASE"), std::string::npos) << wide;
  EXPECT_NE(wide.find("LIVE, 60 s"), std::string::npos) << wide;
  const std::string narrow = picture(two_processes(), {}, 80);
  for (const char* head : {"PID", "COMMAND", "GPU", "DEVICE", "LIVE", "PEAK", "GROWTH", "STEP"})
    EXPECT_NE(narrow.find(head), std::string::npos) << head << "\n" << narrow;
}

TEST(TopFrame, ShowsTheInsideOfARecordedProcessUnlessAnotherIsChosen) {
  View view;
  const auto rows = shown_processes(two_processes(), view);
  EXPECT_EQ(rows[0].pid, 9120U);
  EXPECT_EQ(selected_process(rows, view), 702U);
  view.selected = 9120;
  EXPECT_EQ(selected_process(rows, view), 9120U);
  view.selected = 1;  // ended meanwhile
  EXPECT_EQ(selected_process(rows, view), 702U);
}

TEST(TopFrame, SaysWhyThereIsNothing) {
  State state;
  state.problem = "libnvidia-ml.so.1 is not there";
  const std::string text = picture(state, {});
  EXPECT_NE(text.find("libnvidia-ml.so.1 is not there"), std::string::npos);
  EXPECT_NE(text.find("vramscope run"), std::string::npos);
}

TEST(TopFrame, NamesCannotMoveTheCursor) {
  State state = two_processes();
  state.processes[0].command = "evil\x1b[2J\x07.py";
  const Canvas canvas = draw(state, {}, 150, 40);
  EXPECT_EQ(canvas.plain().find('\x1b'), std::string::npos);
  EXPECT_EQ(canvas.plain().find('\x07'), std::string::npos);
}

TEST(TopCanvas, SendsOnlyWhatChanged) {
  Canvas before(20, 2);
  before.put(0, 0, "live 139.0");
  Canvas after(20, 2);
  after.put(0, 0, "live 140.0");
  EXPECT_EQ(after.changes_from(&before, Depth::none), "\x1b[1;7H\x1b[0m40");
  EXPECT_EQ(after.changes_from(&after, Depth::none), "");
}

TEST(TopCanvas, PlotsFromBelow) {
  Canvas canvas(2, 2);
  plot(canvas, 0, 0, 2, 2, {1.0, 1.0, 0.5, 0.0}, {}, false);
  EXPECT_EQ(canvas.plain(), "⣿\n⣿⡇\n");
  Canvas simple(2, 1);
  plot(simple, 0, 0, 2, 1, {0.3, 0, 0, 0}, {}, true);
  EXPECT_EQ(simple.plain(), "#\n");
}

}  // namespace

}  // namespace vramscope::cli::top
