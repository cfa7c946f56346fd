// Host memory, samples and shapes of steps, tapes and types: traces whose truth the test knows.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "analyze/api.h"
#include "analyze/json.h"
#include "analyze/steps/usual.h"
#include "trace_test.h"
#include "training.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using trace::MarkEdge;
using trace::MarkKind;
using tracegen::Handle;
using tracegen::Maker;

class UserProgram : public TraceTest {
 protected:
  static trace::TracedGraph traced(Maker& m, const char* function, std::uint64_t depth, std::uint64_t before,
                                   std::uint64_t after) {
    return {m.string(function), m.string("/data/train.py"), 7, depth, 10, before, after};
  }
  Finding finding(std::string_view id) {
    const Findings all = opened().findings();
    const auto found = std::ranges::find(all.findings, id, &Finding::id);
    return found == all.findings.end() ? Finding{} : *found;
  }
};

TEST_F(UserProgram, InnerGraphsAreNotCountedTwice) {
  Maker m = new_trace();
  m.alloc({"Relu", "output", kMiB});
  m.report(traced(m, "inner", 1, 110 * kMiB, 140 * kMiB));
  m.report(traced(m, "other", 1, 140 * kMiB, 150 * kMiB));
  m.report(traced(m, "outer", 0, 100 * kMiB, 155 * kMiB));
  m.report(traced(m, "inner", 0, 155 * kMiB, 157 * kMiB));
  ASSERT_TRUE(m.finish());
  const Host host = opened().host().value();
  ASSERT_EQ(host.graphs.size(), 3u);
  EXPECT_EQ(host.graphs[0].function, "inner");
  EXPECT_EQ(host.graphs[0].bytes, 32 * static_cast<std::int64_t>(kMiB));
  EXPECT_EQ(host.graphs[0].traces, 2u);
  EXPECT_EQ(host.graphs[1].bytes, 15 * static_cast<std::int64_t>(kMiB))
      << "55 of outer, of which 40 are those of inner functions";
  EXPECT_EQ(host.built, 57 * static_cast<std::int64_t>(kMiB));
  EXPECT_EQ(host.graphs[0].line, "train.py:7");
}

TEST_F(UserProgram, StagesHoldElementsTimesTheirSize) {
  Maker m = new_trace();
  m.alloc({"Relu", "output", kMiB});
  const trace::StringId file = m.string("/data/input.py");
  m.report(trace::DatasetStage{m.string("shuffle"), file, 4, 1, 512, 1000});
  m.report(trace::DatasetStage{m.string("prefetch"), file, 5, 2, 0, 1000});
  m.report(trace::DatasetStage{m.string("cache"), file, 6, 3, ~std::uint64_t{0}, ~std::uint64_t{0}});
  m.report(trace::StageBuffer{m.string("Shuffle"), 1, 500, 500'000});
  m.report(trace::StageBuffer{m.string("Shuffle"), 1, 100, 100'000});
  ASSERT_TRUE(m.finish());
  const Host host = opened().host().value();
  ASSERT_EQ(host.stages.size(), 3u);
  EXPECT_EQ(host.stages[0].most, 512'000u);
  EXPECT_EQ(host.stages[0].counted, 500'000u) << "the most that was ever counted";
  EXPECT_FALSE(host.stages[1].most) << "TensorFlow chooses the size";
  EXPECT_FALSE(host.stages[2].most) << "no such product";
}

TEST_F(UserProgram, TheLookThatSawMostCounts) {
  Maker m = new_trace();
  m.alloc({"Relu", "output", kMiB});
  const trace::StringId file = m.string("/data/train.py"), numpy = m.string("numpy"), python = m.string("python");
  m.report(trace::HostLine{numpy, file, 3, 1, 9 * kMiB, 2});
  m.report(trace::HostLine{python, {}, 0, 1, 4 * kMiB, 9000});
  m.report(trace::HostLine{numpy, file, 3, 2, kMiB, 1});
  ASSERT_TRUE(m.finish());
  const Host host = opened().host().value();
  ASSERT_EQ(host.lines.size(), 2u);
  EXPECT_EQ(host.lines[0].line, "train.py:3");
  EXPECT_EQ(host.lines[1].line, "");
  const auto arrays = std::ranges::find(host.owners, "in NumPy arrays", [](const auto& owner) { return owner.first; });
  ASSERT_NE(arrays, host.owners.end());
  EXPECT_EQ(arrays->second, 9 * kMiB);
}

// Epochs of four batches, the last of them smaller; in one step of the second epoch, sequences are longer.
TEST_F(UserProgram, WhyStepsDiffer) {
  Maker m = new_trace();
  for (int step = 1; step <= 12; ++step) {
    if (step % 4 == 1) m.mark(MarkKind::epoch, MarkEdge::begin, "epoch", step / 4 + 1);
    if (step % 4 <= 1) m.mark(MarkKind::check, MarkEdge::instant, "samples", step % 4 == 0 ? 10 : 32);
    m.mark(MarkKind::step, MarkEdge::begin, "train", step);
    m.wait(1000);
    const int length = step == 7 ? 300 : 100, batch = step % 4 == 0 ? 10 : 32;
    const std::string shape = "[" + std::to_string(batch) + "," + std::to_string(length) + ",8]";
    Handle block = *m.alloc({"dense/Relu", "output", static_cast<std::uint64_t>(batch * length) * 32, 0, 1, shape});
    m.free(block);
    m.mark(MarkKind::step, MarkEdge::end, "train", step);
    if (step % 4 == 0) m.mark(MarkKind::epoch, MarkEdge::end, "epoch", step / 4);
  }
  ASSERT_TRUE(m.finish());
  const Steps steps = opened().steps();
  ASSERT_EQ(steps.steps.size(), 12u);
  for (const Step& step : steps.steps) EXPECT_EQ(step.samples, step.number % 4 == 0 ? 10u : 32u) << step.number;
  EXPECT_EQ(steps.steps[7].why, "a smaller batch: 10 instead of 32");
  EXPECT_NE(steps.steps[6].why.find("longer inputs: 300 instead of 100 along axis 1"), std::string::npos) << steps.steps[6].why;
  EXPECT_EQ(steps.reason, "The last step of each epoch has a smaller batch: 10 instead of 32.");
  EXPECT_NEAR(steps.samples_per_s.value_or(0), 1e6 * 32 / static_cast<double>(steps.interval_us.value_or(1)), 1);
  EXPECT_GE(steps.interval_us.value_or(0), 1000u);
}

TEST_F(UserProgram, LayersThatArePutTogetherAreNotAGraph) {
  Maker m = new_trace();
  m.alloc({"Relu", "output", kMiB});
  m.report(traced(m, "inner", 1, 110 * kMiB, 140 * kMiB));
  m.report(trace::BuiltLayers{m.string("/data/train.py"), 9, 12, 5 * kMiB});
  m.report(traced(m, "outer", 0, 100 * kMiB, 155 * kMiB));
  m.report(trace::BuiltLayers{m.string("/data/train.py"), 9, 3, kMiB});
  ASSERT_TRUE(m.finish());
  const Host host = opened().host().value();
  ASSERT_EQ(host.graphs.size(), 3u);
  EXPECT_EQ(host.graphs[1].bytes, 25 * static_cast<std::int64_t>(kMiB));  // outer, without inner
  EXPECT_EQ(host.graphs[2].function, "layers");
  EXPECT_EQ(host.graphs[2].line, "train.py:9");
  EXPECT_EQ(host.graphs[2].ops, 15u);
  EXPECT_EQ(host.graphs[2].bytes, 6 * static_cast<std::int64_t>(kMiB));
}

// Batches of 32 and one of 10, whose peak is by chance the median of all.
TEST_F(UserProgram, TheUsualStepHasTheUsualBatch) {
  Steps steps;
  for (const auto& [samples, peak] :
       std::vector<std::pair<std::uint64_t, Bytes>>{{32, 10}, {32, 11}, {10, 12}, {32, 13}, {32, 14}}) {
    Step& step = steps.steps.emplace_back();
    step.samples = samples;
    step.peak = peak;
  }
  EXPECT_EQ(usual_step(steps), std::nullopt);
  steps.has_steady = true;
  steps.steady_last = 4;
  EXPECT_EQ(usual_samples(steps), 32u);
  EXPECT_EQ(usual_step(steps), 3u);
  steps.steps[2].kind = "evaluate";
  EXPECT_EQ(steady_steps(steps), (std::vector<std::size_t>{0, 1, 3, 4}));
  steps.steps[0].samples.reset();
  EXPECT_EQ(usual_samples(steps), std::nullopt);
  EXPECT_EQ(usual_step(steps), 3u);
}

// Batches that differ from step to step: the most frequent size says little.
TEST_F(UserProgram, TheUsualBatchIsInTheMiddle) {
  Steps steps;
  for (const std::uint64_t samples : {8u, 8u, 20u, 30u, 40u}) steps.steps.emplace_back().samples = samples;
  steps.has_steady = true;
  steps.steady_last = 4;
  EXPECT_EQ(usual_samples(steps), 20u);
}

// The next model of a search has layers of the same names and of another width: its inputs are what they were.
TEST_F(UserProgram, AnotherModelHasNoOtherInputs) {
  Maker m = new_trace();
  for (int step = 1; step <= 12; ++step) {
    const std::uint64_t width = step <= 7 ? 64 : 48;
    m.mark(MarkKind::step, MarkEdge::begin, "train", step);
    Handle result = *m.alloc({"dense/Relu", "output", 32 * width * 4, 0, 1, fmt::format("[32,{}]", width)});
    Handle change = *m.alloc({"adam/Mul", "output", 784 * width * 4, 0, 1, fmt::format("[784,{}]", width)});
    m.free(change);
    m.free(result);
    m.mark(MarkKind::step, MarkEdge::end, "train", step);
  }
  ASSERT_TRUE(m.finish());
  const Steps steps = opened().steps();
  EXPECT_EQ(steps.steps.size(), 12u);
  EXPECT_EQ(steps.reason, "");
}

// Keras traces a layer of the user's alone when the model is built, to learn the shape of its result. Batches are there before
// all steps.
TEST_F(UserProgram, LayersAreInTheOrderInWhichTheModelCallsThem) {
  Maker m = new_trace();
  m.op_source("switch/Mul", "/data/train.py", 9, "switch");  // never run
  for (const char* layer : {"embedding", "switch", "head"})
    m.op_source(fmt::format("net/{}/MatMul", layer), "/data/train.py", 9, layer);
  Handle batch = *m.alloc({"", "", 4096});
  m.tag(batch, trace::Category::input, "batch", "");
  for (int step = 1; step <= 6; ++step) {
    m.mark(MarkKind::step, MarkEdge::begin, "train", step);
    std::vector<Handle> made;
    for (const char* layer : {"switch", "embedding", "head"})  // in the order of the executor
      made.push_back(*m.alloc({fmt::format("net/{}/MatMul", layer), "output", 4096}));
    for (Handle& block : made) m.free(block);
    m.mark(MarkKind::step, MarkEdge::end, "train", step);
  }
  m.free(batch);
  ASSERT_TRUE(m.finish());
  std::string order;
  const Layers layers = opened().layers("peak").value();
  for (const LayerRow& row : layers.rows) order += row.name + " ";
  EXPECT_EQ(order, "(input) embedding switch head ");
}

TEST_F(UserProgram, RowsOutsideOfAStepsLayersComeLast) {
  Maker m = new_trace();
  for (const char* layer : {"second", "first"}) m.op_source(fmt::format("net/{}/MatMul", layer), "/data/train.py", 9, layer);
  m.alloc({"", "", 4096});
  m.tag(*m.alloc({"", "", 4096}), trace::Category::parameter, "kernel", "frozen");
  m.tag(*m.alloc({"", "", 4096}), trace::Category::input, "batch", "");
  for (int step = 1; step <= 6; ++step) {
    m.mark(MarkKind::step, MarkEdge::begin, "train", step);
    std::vector<Handle> made;
    for (const char* op : {"adam/Mul", "net/second/MatMul", "net/first/MatMul"}) made.push_back(*m.alloc({op, "output", 4096}));
    for (Handle& block : made) m.free(block);
    m.mark(MarkKind::step, MarkEdge::end, "train", step);
  }
  ASSERT_TRUE(m.finish());
  std::string order;
  const Layers layers = opened().layers("peak").value();
  for (const LayerRow& row : layers.rows) order += "'" + row.name + "' ";
  EXPECT_EQ(order, "'(input)' 'second' 'first' 'frozen' '(optimizer)' '' ");
}

TEST_F(UserProgram, ATapeKeepsWhatIsFreedWhenItDies) {
  Maker m = new_trace();
  Handle before = *m.alloc({"old", "output", kMiB});
  m.mark(MarkKind::tape, MarkEdge::begin, "persistent", 1, "/data/train.py:12");
  Handle kept = *m.alloc({"Relu", "output", 4 * kMiB}), more = *m.alloc({"Relu", "output", 2 * kMiB});
  m.report(trace::PersistentTape{m.string("/data/train.py"), 12, 2});
  m.mark(MarkKind::tape, MarkEdge::end, "persistent", 1);
  m.free(kept);
  m.free(before);
  m.free(more);
  Handle after = *m.alloc({"Relu", "output", kMiB});
  m.free(after);
  ASSERT_TRUE(m.finish());
  const Finding tape = finding("persistent-tape");
  EXPECT_EQ(tape.at_stake, 6 * kMiB);
  EXPECT_EQ(tape.title, "The persistent tape at train.py:12 keeps 6.0 MiB until it is deleted.");
}

TEST_F(UserProgram, Float64EntersWithTheArrayNotWithItsUse) {
  Maker m = new_trace();
  m.alloc({"MatMul", "output", 8 * kMiB, 0, 2, "", "/data/train.py", 20});
  m.report(trace::Float64Variable{m.string("table"), m.string("/data/train.py"), 7, 8 * kMiB});
  m.report(trace::Float64Enters{m.string("/data/train.py"), 3, 16 * kMiB});
  ASSERT_TRUE(m.finish());
  EXPECT_NE(finding("float64").title.find("it enters at train.py:3."), std::string::npos);
}

TEST_F(UserProgram, WithoutAReportTheFirstOpOfTheTypeIsWhereItEnters) {
  Maker m = new_trace();
  m.alloc({"Cast", "output", 2 * kMiB, 0, 2, "", "/data/train.py", 11});
  m.alloc({"MatMul", "output", 8 * kMiB, 0, 2, "", "/data/train.py", 20});
  ASSERT_TRUE(m.finish());
  EXPECT_NE(finding("float64").title.find("it enters at train.py:11."), std::string::npos);
}

TEST_F(UserProgram, ReportsThatSayNothingDoNoHarm) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  Maker m = new_trace();
  m.alloc({"Relu", "output", kMiB});
  m.report(trace::TracedGraph{.depth = kMost});
  m.report(trace::TracedGraph{.depth = 64, .host_before = 0, .host_after = kMost / 2});
  m.report(trace::TracedGraph{.depth = 63, .host_before = kMost, .host_after = 0});
  m.report(trace::TracedGraph{.host_before = kMost / 2 + 1});
  m.report(trace::DatasetStage{});
  m.report(trace::StageBuffer{.number = kMost, .bytes = kMost});
  m.report(trace::Float64Enters{});
  m.report(trace::HostLine{.look = kMost, .bytes = kMost});
  m.report(trace::HostLine{.look = kMost, .bytes = kMost});
  m.mark(MarkKind::check, MarkEdge::instant, "samples", -5);
  m.mark(MarkKind::tape, MarkEdge::end, "persistent", 3);
  ASSERT_TRUE(m.finish());
  const Engine e = opened();
  EXPECT_FALSE(to_json(e.host().value()).empty());
  EXPECT_FALSE(to_json(e.findings()).empty());
}

}  // namespace
}  // namespace vramscope::test
