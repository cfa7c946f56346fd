// Each finding from a trace that has its cause, with the bytes that the remedy would save.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "analyze/api.h"
#include "trace_test.h"
#include "training.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using tracegen::Handle;
using tracegen::Maker;
using tracegen::Training;
using tracegen::Truth;

class FindingsTest : public TraceTest {
 protected:
  Findings found() {
    const Engine engine = opened();
    Findings out = engine.findings();
    for (const Finding& f : out.findings) EXPECT_TRUE(engine.check_filter(f.where)) << f.id << ": " << f.where;
    EXPECT_LE(out.findings.size(), 5u);
    EXPECT_TRUE(std::ranges::is_sorted(out.findings, std::greater<>{}, [](const Finding& f) { return f.at_stake.value_or(0); }));
    return out;
  }
  Finding finding(const std::string& id) {
    Findings all = found();
    auto it = std::ranges::find(all.findings, id, &Finding::id);
    if (it == all.findings.end()) ADD_FAILURE() << "no finding " << id;
    return it == all.findings.end() ? Finding{} : *it;
  }
  Truth train(const Training& t) {
    path_.clear();
    return tracegen::write_training(path_, t).value();
  }
  Maker maker(std::uint64_t limit = 1024 * kMiB, bool growth = true, trace::Framework of = trace::Framework::tensorflow) {
    Maker::Options options;
    options.framework = of;
    options.pool.limit = limit;
    options.pool.growth = growth;
    return new_trace(options);
  }
  // Ten equal steps, in which `during` is called.
  static void steps(Maker& m, const std::function<void()>& during) {
    for (int s = 0; s < 10; ++s) {
      m.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", s);
      during();
      m.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", s);
    }
  }
};

TEST_F(FindingsTest, CleanProgramHasNoneOfThem) {
  train({});
  for (const Finding& f : found().findings)
    for (const char* id : {"leak", "oom", "float64", "peak-is-autotuning", "retrace", "baked-constant"}) EXPECT_NE(f.id, id);
}

TEST_F(FindingsTest, Autotuning) {
  Training t;
  t.autotune_bytes = 64 * kMiB;
  Truth truth = train(t);
  EXPECT_EQ(finding("peak-is-autotuning").at_stake, truth.peak - truth.steady_peak);
}

TEST_F(FindingsTest, OnTheHostTheStartIsNoAutotuning) {
  Training t;
  t.autotune_bytes = 64 * kMiB;
  t.maker.memory = trace::Memory::host;
  Truth truth = train(t);
  EXPECT_EQ(finding("peak-is-start").at_stake, truth.peak - truth.steady_peak);
  std::string sentence = opened().overview().sentence;
  EXPECT_EQ(sentence.find("autotuning"), std::string::npos) << sentence;
}

TEST_F(FindingsTest, AStepThatFailedLaterIsNoWarmUp) {
  Maker m = maker(64 * kMiB);
  auto step = [&](int s, std::uint64_t scratch) {
    m.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", s);
    Handle kept = m.alloc({"dense/MatMul", "output", 8 * kMiB}).value();
    m.free(m.alloc({"dense/Conv2D", "temp", scratch}).value());
    m.free(kept);
    m.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", s);
  };
  for (int s = 1; s <= 20; ++s) step(s, 4 * kMiB);
  step(21, 40 * kMiB);
  ASSERT_TRUE(m.finish());
  for (const Finding& f : found().findings) {
    EXPECT_NE(f.id, "peak-is-autotuning") << f.title;
    EXPECT_NE(f.id, "peak-is-start") << f.title;
  }
}

TEST_F(FindingsTest, HolesThatNoRequestNeededAreNoFragmentation) {
  Maker m = maker();
  std::vector<Handle> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(m.alloc({"MatMul", "output", kMiB}).value());
  steps(m, [&] { m.free(m.alloc({"MatMul", "output", 4 * kMiB}).value()); });
  for (std::size_t i = 0; i < blocks.size(); i += 2) m.free(blocks[i]);  // at the end, every second one
  ASSERT_TRUE(m.finish());
  for (const Finding& f : found().findings) EXPECT_NE(f.id, "fragmentation") << f.title;
}

TEST_F(FindingsTest, NothingIsSaidAboutFloat64WhereTypesAreNotRecorded) {
  auto says_none = [&] { return std::ranges::count(found().also_checked, "no float64") > 0; };
  for (std::uint64_t type : {0u, 1u}) {
    Maker m = maker();
    m.free(m.alloc({"MatMul", "output", 8 * kMiB, 0, type}).value());
    ASSERT_TRUE(m.finish());
    EXPECT_EQ(says_none(), type == 1);
  }
}

TEST_F(FindingsTest, Leak) {
  Training t;
  t.leak_bytes = 64u << 10;
  Truth truth = train(t);
  EXPECT_EQ(finding("leak").at_stake, truth.leaks * t.leak_bytes);
}

TEST_F(FindingsTest, LeakThatReplacesABlock) {
  Training t;
  t.growing_block = 64u << 10;
  train(t);
  EXPECT_EQ(finding("leak").cause, "ConcatV2 allocates a larger block in each step.");
}

TEST_F(FindingsTest, ANumberPerStepIsNoLeakBeforeItAddsUp) {
  for (const bool adds_up : {false, true}) {
    Maker m = maker();
    m.alloc({"MatMul", "output", 8 * kMiB});
    for (int s = 0; s < (adds_up ? 6000 : 60); ++s) {
      m.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", s);
      m.alloc({"Mean", "output", 256, 0, 1, "", "train.py", 31});
      m.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", s);
    }
    ASSERT_TRUE(m.finish());
    const Findings all = found();
    EXPECT_EQ(std::ranges::count(all.findings, "leak", &Finding::id), adds_up ? 1 : 0);
    EXPECT_EQ(std::ranges::count(all.also_checked, "growth of only 256 B per step"), adds_up ? 0 : 1);
  }
}

// PyTorch's L-BFGS keeps what it learned in earlier steps, up to a limit. A variable of TensorFlow has one block at a time.
TEST_F(FindingsTest, AnOptimizerWhoseHistoryGrowsDoesNotLeak) {
  Maker m = maker(1024 * kMiB, true, trace::Framework::pytorch);
  for (int s = 0; s < 20; ++s) {
    m.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", s);
    m.tag(*m.alloc({"", "", kMiB, 0, 1, "", "train.py", 31}), trace::Category::optimizer_state, "weight.old_dirs", "dense");
    m.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", s);
  }
  ASSERT_TRUE(m.finish());
  const Finding history = finding("optimizer-history");
  EXPECT_EQ(history.title, "The optimizer's state grows: 1.0 MiB per step since step 2, 19.0 MiB so far.");
  EXPECT_NE(history.remedy.find("history_size"), std::string::npos) << history.remedy;
  const Findings all = found();
  EXPECT_EQ(std::ranges::count(all.findings, "leak", &Finding::id), 0);
  EXPECT_EQ(std::ranges::count(all.findings, "optimizer-state", &Finding::id), 0) << "said once";
}

TEST_F(FindingsTest, LeakHeldByAList) {
  Maker m = maker();
  m.report(trace::HeldTensors{.name = m.string("keep.seen"),
                              .container = m.string("list"),
                              .file = m.string("/data/train.py"),
                              .line = 31,
                              .count = 9,
                              .bytes = 9 * kMiB});
  for (int s = 0; s < 20; ++s) {
    m.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", s);
    m.alloc({"Identity", "output", kMiB, 0, 1, "", "train.py", 31});
    m.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", s);
  }
  ASSERT_TRUE(m.finish());
  Finding held = finding("held-tensors");
  EXPECT_NE(held.title.find("kept by keep.seen (train.py:31)"), std::string::npos) << held.title;
  EXPECT_NE(held.cause.find("holds 20 tensors at the end"), std::string::npos) << held.cause;
  EXPECT_EQ(held.at_stake, 19 * kMiB) << "the growth since the first step, not what Python had seen by then";
  Findings all = found();
  EXPECT_EQ(std::ranges::count(all.findings, "leak", &Finding::id), 0) << "said once, by who holds it";
}

// A pool that a leak fills has holes too, but it would have grown without them.
TEST_F(FindingsTest, GrowthThatALeakNeedsIsNoFragmentation) {
  Maker m = maker();
  for (int s = 0; s < 40; ++s) {
    m.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", s);
    auto scratch = m.alloc({"Mul", "output", (64u << 10) + 256u * static_cast<unsigned>(s)});
    m.alloc({"Identity", "output", kMiB / 2, 0, 1, "", "train.py", 31});
    m.free(*scratch);
    m.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", s);
  }
  ASSERT_TRUE(m.finish());
  Findings all = found();
  ASSERT_FALSE(all.findings.empty());
  EXPECT_EQ(all.findings[0].id, "leak");
  for (const Finding& f : all.findings) EXPECT_FALSE(f.id == "fragmentation" && f.at_stake) << f.title;
}

TEST_F(FindingsTest, GrowthThatOnlyHolesCauseIsFragmentation) {
  Maker m = maker();
  std::vector<Handle> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(*m.alloc({"Relu", "output", kMiB / 4}));  // the first region is full
  for (std::size_t i = 0; i < blocks.size(); i += 2) m.free(blocks[i]);
  m.alloc({"MatMul", "output", kMiB / 2});
  ASSERT_TRUE(m.finish());
  EXPECT_EQ(finding("fragmentation").at_stake, 4 * kMiB) << "the second region is twice the first";
}

TEST_F(FindingsTest, PoolTookTheCard) {
  Maker m = maker(1024 * kMiB, false);
  auto a = m.alloc({"Relu", "output", 8 * kMiB});
  m.device_sample(0, 1024 * kMiB, 1040 * kMiB, 1024 * kMiB);
  m.free(*a);
  ASSERT_TRUE(m.finish());
  EXPECT_EQ(finding("pool-took-card").at_stake, 1024 * kMiB - 8 * kMiB);
}

TEST_F(FindingsTest, EmptyRegions) {
  Maker m = maker();
  auto small = m.alloc({"Relu", "output", kMiB});
  auto once = m.alloc({"Big", "output", 256 * kMiB});
  m.free(*once);
  steps(m, [&] {
    auto a = m.alloc({"Relu", "output", kMiB / 4});
    m.free(*a);
  });
  ASSERT_TRUE(m.finish());
  EXPECT_GE(finding("empty-regions").at_stake.value_or(0), 256 * kMiB);
  (void)small;
}

TEST_F(FindingsTest, Float64) {
  Maker m = maker();
  m.alloc({"Cast", "output", 8 * kMiB, 0, 2});
  m.report(trace::Float64Variable{m.string("table"), m.string("/data/train.py"), 7, 8 * kMiB});
  ASSERT_TRUE(m.finish());
  Finding f = finding("float64");
  EXPECT_EQ(f.at_stake, 4 * kMiB);
  EXPECT_NE(f.title.find("it enters at train.py:7"), std::string::npos) << f.title;
}

TEST_F(FindingsTest, OptimizerState) {
  Maker m = maker();
  Handle kernel = *m.alloc({"kernel", "output", 4 * kMiB});
  m.tag(kernel, trace::Category::parameter, "dense/kernel", "dense");
  for (const char* slot : {"adam/m", "adam/v", "adam/dense_kernel_gradient_accumulator"})  // any optimizer has the last one
    m.tag(*m.alloc({slot, "output", 4 * kMiB}), trace::Category::optimizer_state, slot, "");
  // Nobody trains these, so the optimizer keeps nothing for them.
  m.tag(*m.alloc({"mask", "output", 6 * kMiB}), trace::Category::buffer, "mask", "dense");
  ASSERT_TRUE(m.finish());
  EXPECT_EQ(finding("optimizer-state").at_stake, 4 * kMiB);
  EXPECT_NE(finding("optimizer-state").cause.find("2.0 values per parameter, not counting 4.0 MiB"), std::string::npos);
}

TEST_F(FindingsTest, AveragedWeightsAreNotASlotToSave) {
  Maker m = maker();
  m.tag(*m.alloc({"kernel", "output", 4 * kMiB}), trace::Category::parameter, "dense/kernel", "dense");
  for (const char* slot : {"sgd/dense_kernel_momentum", "sgd/dense_kernel_average"})
    m.tag(*m.alloc({slot, "output", 4 * kMiB}), trace::Category::optimizer_state, slot, "");
  ASSERT_TRUE(m.finish());
  EXPECT_EQ(std::ranges::count(found().findings, "optimizer-state", &Finding::id), 0);
}

TEST_F(FindingsTest, LayoutCopies) {
  Maker m = maker();
  m.alloc({"StatefulPartitionedCall/conv2d/Conv2D-0-TransposeNHWCToNCHW-LayoutOptimizer", "output", 8 * kMiB});
  ASSERT_TRUE(m.finish());
  EXPECT_EQ(finding("layout-copies").at_stake, 8 * kMiB);
}

TEST_F(FindingsTest, InputsKeptOnTheDevice) {
  Maker m = maker();
  m.tag(*m.alloc({"_EagerConst", "output", 32 * kMiB, 0, 1, "", "train.py", 24}), trace::Category::input, "data", "");
  steps(m, [&] {
    auto a = m.alloc({"Relu", "output", kMiB});
    m.free(*a);
  });
  ASSERT_TRUE(m.finish());
  EXPECT_EQ(finding("inputs-on-device").at_stake, 32 * kMiB);
}

TEST_F(FindingsTest, Checkpointing) {
  Training t;
  t.layers = 12;
  train(t);
  EXPECT_FALSE(finding("checkpointing").at_stake) << "what it saves depends on where: unknown";
}

TEST_F(FindingsTest, WhatPythonSaw) {
  Maker m = maker();
  m.alloc({"Relu", "output", kMiB});
  const trace::StringId file = m.string("/data/train.py");
  m.report(trace::Retrace{m.string("step"), m.string("n=1 -> n=2"), file, 9, 3});
  m.report(trace::Retrace{m.string("step"), m.string("n=\"4\" -> n=5"), file, 9, 30});
  m.report(trace::Retrace{m.string("rare"), {}, file, 2, 3});
  m.report(trace::PersistentTape{file, 12, 4});
  m.report(trace::BakedConstant{.op = m.string("Const"), .file = file, .line = 3, .bytes = 3 * kMiB, .copies = 2});
  m.report(trace::BakedConstant{.op = m.string("Const_1"), .file = file, .line = 4, .bytes = kMiB, .copies = 1});
  ASSERT_TRUE(m.finish());
  EXPECT_EQ(finding("baked-constant").at_stake, 3 * kMiB) << "the largest line first, and its size, however many graphs hold it";
  EXPECT_NE(finding("baked-constant").title.find("3.0 MiB of constants"), std::string::npos);
  EXPECT_NE(finding("baked-constant").title.find("in each of 2 graphs"), std::string::npos);
  EXPECT_NE(finding("persistent-tape").title.find("train.py:12"), std::string::npos);
  Finding retrace = finding("retrace");
  EXPECT_EQ(retrace.title, "step at train.py:9 was traced 30 times; each trace keeps its graph.");
  EXPECT_EQ(retrace.cause, "n=\"4\" -> n=5");
  Findings all = found();
  EXPECT_EQ(std::ranges::count(all.findings, "retrace", &Finding::id), 1);
}

TEST_F(FindingsTest, ReportsThatSayNothingDoNoHarm) {
  Maker m = maker();
  m.alloc({"Relu", "output", kMiB});
  m.report(trace::VariableOp{
      .op = m.string("Relu"), .role = static_cast<trace::OpRole>(200), .category = static_cast<trace::Category>(200)});
  m.report(
      trace::VariableOp{.op = m.string("Relu"), .role = trace::OpRole::value, .category = static_cast<trace::Category>(200)});
  m.report(trace::HeldTensors{.bytes = ~std::uint64_t{0}});
  m.report(trace::PersistentTape{});
  m.report(trace::Retrace{.traces = ~std::uint64_t{0}});
  m.report(trace::BakedConstant{.bytes = ~std::uint64_t{0}, .copies = ~std::uint64_t{0}});
  m.report(trace::Float64Variable{.bytes = ~std::uint64_t{0}});
  m.report(trace::DatasetOnDevice{});
  m.report(trace::CachedDataset{});
  m.report(trace::ProgramPlan{.outputs = ~std::uint64_t{0}, .temporaries = ~std::uint64_t{0}});
  m.report(trace::StateNotDonated{.bytes = ~std::uint64_t{0}});
  m.report(trace::DonationFailed{.bytes = ~std::uint64_t{0}});
  m.report(trace::ReplicatedArguments{.category = static_cast<trace::Category>(200), .bytes = ~std::uint64_t{0}});
  ASSERT_TRUE(m.finish());
  EXPECT_FALSE(found().findings.empty());
}

TEST_F(FindingsTest, ProgramsOfJax) {
  Maker m = maker();
  m.alloc({"jit_step", "execute", kMiB});
  const trace::StringId file = m.string("/data/train.py"), step = m.string("step");
  m.report(trace::StateNotDonated{step, m.string("params opt_state"), file, 9, 6 * kMiB});
  m.report(
      trace::DonationFailed{step, m.string("cache['k']"), m.string("no result is f32[8], as cache['k'] is"), file, 9, 7 * kMiB});
  m.report(trace::ReplicatedArguments{step, m.string("params['w']"), trace::Category::parameter, file, 9, 4 * kMiB, 4, kMiB});
  m.report(trace::ReplicatedArguments{step, m.string("batch"), trace::Category::input, file, 9, 2 * kMiB, 2, 0});
  ASSERT_TRUE(m.finish());
  const Finding kept = finding("state-not-donated");
  EXPECT_EQ(kept.title, "step at train.py:9 holds its state twice: 6.0 MiB is not donated.");
  EXPECT_NE(kept.remedy.find("donate_argnames=(\"params\", \"opt_state\")"), std::string::npos) << kept.remedy;
  EXPECT_EQ(finding("donation-failed").cause, "no result is f32[8], as cache['k'] is.");
  const Finding copies = finding("replicated-state");
  EXPECT_EQ(copies.at_stake, 3 * kMiB) << "each device could hold a quarter";
  EXPECT_EQ(copies.title, "4.0 MiB of parameters is replicated: 4 devices hold the same bytes, beside 1.0 MiB that is sharded.");
  EXPECT_EQ(finding("replicated-inputs").at_stake, kMiB);
}

// JAX compiles a function again, TensorFlow traces it again; where both are imported, it is TensorFlow's.
TEST_F(FindingsTest, AFunctionThatIsTracedAgainHasTheWordsOfItsFramework) {
  for (const auto& [versions, title] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "f at train.py:9 was traced 12 times; each trace keeps its graph."},
           {{"jax"}, "f at train.py:9 was compiled 12 times; each executable stays in memory."},
           {{"tensorflow"}, "f at train.py:9 was traced 12 times; each trace keeps its graph."},
           {{"jax", "tensorflow"}, "f at train.py:9 was traced 12 times; each trace keeps its graph."}}) {
    Maker m = maker();
    for (const std::string& name : versions) m.setting(name + ".version", "1");
    m.alloc({"Relu", "output", kMiB});
    m.report(trace::Retrace{m.string("f"), m.string("n"), m.string("/data/train.py"), 9, 12});
    ASSERT_TRUE(m.finish());
    EXPECT_EQ(finding("retrace").title, title);
  }
}

TEST_F(FindingsTest, ACategoryOfTwoWordsIsOneWordOfAFilter) {
  Maker m = maker();
  m.alloc({"jit_step", "execute", kMiB});
  m.report(trace::ReplicatedArguments{m.string("step"), m.string("opt_state.mu"), trace::Category::optimizer_state,
                                      m.string("/data/train.py"), 9, 4 * kMiB, 4, 0});
  ASSERT_TRUE(m.finish());
  EXPECT_EQ(finding("replicated-state").where, "category:optimizer_state");
}

}  // namespace
}  // namespace vramscope::test
