// Out of memory, one generated program for each cause. "Would fit without it" is checked by running the program without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "analyze/api.h"
#include "trace_test.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using tracegen::Handle;
using tracegen::Maker;

// A program with switches for everything that may make it fail.
struct Program {
  std::uint64_t limit = 64 * kMiB, card = 64 * kMiB, others = 0;
  std::uint64_t model = 20 * kMiB, request = 8 * kMiB;
  std::uint64_t leak = 0, scratch = 0;
  bool fragmented = false, growth = false, killed = false;
  bool steps = true;     // else the request comes right after the model
  bool torch = false;    // the program set the limit; neither it nor the pool's size is known from the failed request
  bool unwinds = false;  // an exception frees everything on its way out, as Python does
};

// Runs it; true if the last request was served.
bool run(const TracePath& path, const Program& p) {
  path.clear();
  Maker::Options options;
  options.pool.limit = p.limit;
  options.pool.growth = p.growth;
  options.pool.device = p.card - p.others;
  if (p.torch) {
    options.framework = trace::Framework::pytorch;
    options.shows_pool = false;
  }
  Maker maker = Maker::create(path, options).value();
  if (p.torch) maker.report(trace::PoolLimit{0, p.limit});
  auto sample = [&] { maker.device_sample(0, maker.pool().pool() + p.others, p.card, maker.pool().pool()); };
  std::vector<Handle> all;
  auto get = [&](const char* op, const char* region, std::uint64_t bytes) {
    auto block = maker.alloc({op, region, bytes});
    if (block) all.push_back(*block);
    return block;
  };
  bool ok = get("StatefulPartitionedCall/sequential/dense/kernel", "output", p.model).has_value();
  sample();
  if (p.fragmented) {  // every second of many blocks stays
    std::vector<Handle> short_lived;
    for (int i = 0; i < 40; ++i) {
      auto a = get("StatefulPartitionedCall/sequential/dense/Relu", "output", kMiB / 2), b = get("Cache", "output", kMiB / 4);
      if (!a || !b) break;
      short_lived.push_back(*a);
    }
    auto rest = get("StatefulPartitionedCall/sequential/dense/Big", "output", p.limit - maker.pool().live() - kMiB);
    for (const Handle& h : short_lived) maker.free(h);
    (void)rest;
  }
  if (ok && !p.steps) ok = get("Tile", "output", p.request).has_value();
  for (int s = 1; ok && p.steps && s <= 30; ++s) {
    maker.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", s);
    auto a = get("StatefulPartitionedCall/sequential/dense/Relu", "output", p.fragmented ? 4096 : 2 * kMiB);
    ok = a.has_value();
    if (ok && p.leak > 0) ok = get("Identity", "output", p.leak).has_value();
    if (ok && s == 30) {
      std::optional<Handle> w;
      if (p.scratch > 0) {
        w = get("StatefulPartitionedCall/sequential/conv/Conv2D", "", p.scratch);
        ok = w.has_value();
      }
      if (ok) ok = get("StatefulPartitionedCall/gradient_tape/sequential/dense/MatMul", "output", p.request).has_value();
    }
    if (!ok) break;
    if (a) maker.free(*a), std::erase_if(all, [&](const Handle& h) { return h.address == a->address; });
    maker.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", s);
  }
  sample();
  if (!ok && p.unwinds) {
    for (const Handle& h : all) maker.free(h);
    maker.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", -1);
  }
  EXPECT_TRUE(p.killed ? maker.abandon() : maker.finish());
  return ok;
}

class Oom : public TraceTest {
 protected:
  OomEvent verdict(const Program& p) {
    EXPECT_FALSE(run(path_, p)) << "the program was meant to fail";
    Ooms ooms = opened().ooms();
    EXPECT_FALSE(ooms.events.empty());
    return ooms.events.empty() ? OomEvent{} : ooms.events.back();
  }
  static const OomCause& cause(const OomEvent& e, const std::string& name) {
    return *std::ranges::find(e.causes, name, &OomCause::cause);
  }
  // What the answer says about a cause, against the same program without it.
  void expect_right(const OomEvent& e, const std::string& name, const Program& without) {
    const OomCause& c = cause(e, name);
    ASSERT_NE(c.would_fit, "unknown") << name;
    EXPECT_EQ(c.would_fit == "yes", run(path_, without)) << name << ": " << c.evidence;
  }
};

TEST_F(Oom, TooBig) {
  Program p;
  p.request = 60 * kMiB;
  OomEvent e = verdict(p);
  EXPECT_EQ(e.verdict, "too big");
  EXPECT_EQ(e.step, 30);
  EXPECT_EQ(e.requested, 60 * kMiB);
  EXPECT_FALSE(cause(e, "fragmentation").holds);
  EXPECT_EQ(cause(e, "pool limit").would_fit, "no");
  Program smaller = p;
  smaller.request -= e.short_by;
  EXPECT_TRUE(run(path_, smaller));
  smaller.request += 1 + 256;
  EXPECT_FALSE(run(path_, smaller));
}

TEST_F(Oom, Fragmentation) {
  Program p;
  p.fragmented = true;
  p.request = 8 * kMiB;
  OomEvent e = verdict(p);
  EXPECT_EQ(e.verdict, "fragmentation");
  EXPECT_GE(e.free, e.requested);
  EXPECT_LT(e.largest_free, e.requested);
}

TEST_F(Oom, FragmentationIsNotDeniedElsewhere) {
  Program p;
  p.fragmented = true;
  ASSERT_FALSE(run(path_, p));
  Engine engine = opened();
  Fragmentation f = engine.fragmentation().value();
  OomEvent e = engine.ooms().events.back();
  EXPECT_EQ(f.worst.at, e.at);
  EXPECT_EQ(f.worst.request, p.request);
  EXPECT_EQ(f.worst.unusable, e.free);  // one region, and no hole serves the request
  EXPECT_NE(f.sentence.find("a request for 8.0 MiB failed"), std::string::npos) << f.sentence;
  Findings findings = engine.findings();
  EXPECT_NE(std::ranges::find(findings.findings, "fragmentation", &Finding::id), findings.findings.end());
  for (const std::string& clause : findings.also_checked) EXPECT_EQ(clause.find("No fragmentation"), std::string::npos);
  Ledger ledger = engine.ledger("oom").value();
  const LedgerLine& held = *std::ranges::find(ledger.lines, "pool regions", &LedgerLine::name);
  EXPECT_NE(held.note.find("request (8.0 MiB)"), std::string::npos) << held.note;
  EXPECT_FALSE(check(engine, "fragmentation = \"10%\"\n", nullptr).value().violations.empty());
}

TEST_F(Oom, ARequestLargerThanAllThatWasFreeIsNoFragmentation) {
  Program p;
  p.request = 60 * kMiB;
  ASSERT_FALSE(run(path_, p));
  Fragmentation f = opened().fragmentation().value();
  EXPECT_EQ(f.sentence.find("failed"), std::string::npos) << f.sentence;
  EXPECT_LT(f.worst.request, p.request);
}

// The limit that the answer advises serves the request, one MiB less does not. Regions are not joined: what is free in one
// cannot make up for what another lacks, and a region that the limit cut grows with the limit.
TEST_F(Oom, AdvisedLimitIsTheSmallestThatServes) {
  struct Case {
    std::uint64_t limit, model, request;
    bool growth;
  };
  for (auto [limit, model, request, growth] :
       {Case{24 * kMiB, kMiB / 2, 500 * kMiB, true},  // 1.5 MiB free in the first region
        Case{24 * kMiB, 15 * kMiB, 13 * kMiB, true}, Case{10 * kMiB, 9 * kMiB, 3 * kMiB, true},  // cut, and growing is enough
        Case{10 * kMiB, 9 * kMiB, 30 * kMiB, true},                                              // cut, and growing is not enough
        Case{24 * kMiB, 23 * kMiB + 300, 5 * kMiB, true}, Case{24 * kMiB, 20 * kMiB, 8 * kMiB, false}}) {
    SCOPED_TRACE(testing::Message() << limit / kMiB << " " << model / kMiB << " " << request / kMiB << " " << growth);
    Program p;
    p.card = 4096 * kMiB;
    p.limit = limit;
    p.model = model;
    p.request = request;
    p.growth = growth;
    p.steps = false;
    ASSERT_FALSE(run(path_, p));
    Ooms ooms = opened().ooms();
    ASSERT_EQ(ooms.events.back().verdict, "pool limit");
    std::uint64_t advised = std::stoull(ooms.advice.substr(ooms.advice.find(" to ") + 4));
    p.limit = advised * kMiB;
    EXPECT_TRUE(run(path_, p)) << ooms.advice;
    p.limit -= kMiB;
    EXPECT_FALSE(run(path_, p)) << ooms.advice;
  }
}

TEST_F(Oom, PoolLimit) {
  for (const bool set_by_program : {false, true}) {
    Program p;
    p.torch = set_by_program;
    p.limit = 24 * kMiB;
    p.card = 256 * kMiB;
    OomEvent e = verdict(p);
    EXPECT_EQ(e.verdict, "pool limit") << set_by_program;
    Program without = p;
    without.limit = p.card;
    expect_right(e, "pool limit", without);
  }
}

TEST_F(Oom, ProgramOfJaxHasItsPlan) {
  Maker::Options options;
  options.framework = trace::Framework::jax;
  options.pool.limit = options.pool.device = 64 * kMiB;
  Maker m = new_trace(options);
  const trace::StringId name = m.string("jit_train_step"), file = m.string("/data/train.py");
  m.report(trace::ProgramPlan{name, file, 7, kMiB, kMiB, kMiB, kMiB});
  m.report(trace::ProgramPlan{name, file, 7, 32 * kMiB, 34 * kMiB, 32 * kMiB, 50 * kMiB});  // the newest counts
  ASSERT_TRUE(m.alloc({"device_put", "transfer", 32 * kMiB}));
  ASSERT_FALSE(m.alloc({"jit_train_step", "execute", 50 * kMiB}));
  ASSERT_TRUE(m.finish());
  const OomEvent e = opened().ooms().events.back();
  EXPECT_EQ(e.category, "XLA temporaries") << "as large as the plan's temporaries";
  EXPECT_EQ(
      e.plan,
      "XLA's plan of jit_train_step: 32.0 MiB of arguments, 50.0 MiB of temporaries and 2.0 MiB of results that do not take "
      "the place of donated arguments. Beside its arguments it needs 52.0 MiB; 32.0 MiB was free.");
}

TEST_F(Oom, Leak) {
  Program p;
  p.leak = 4 * kMiB;
  OomEvent e = verdict(p);
  EXPECT_EQ(e.verdict, "leak");
  Program without = p;
  without.leak = 0;
  expect_right(e, "leak", without);
}

TEST_F(Oom, LeakWhoseBlocksAreFreedByTheException) {
  Program p;
  p.leak = 3 * kMiB;
  p.unwinds = true;
  EXPECT_EQ(verdict(p).verdict, "leak");
}

TEST_F(Oom, LeakButStillTooBigWithoutIt) {
  Program p;
  p.leak = 1 * kMiB;
  p.request = 60 * kMiB;
  OomEvent e = verdict(p);
  EXPECT_TRUE(cause(e, "leak").holds);
  EXPECT_NE(e.verdict, "leak");
  Program without = p;
  without.leak = 0;
  expect_right(e, "leak", without);
}

TEST_F(Oom, Spike) {
  Program p;
  p.scratch = 36 * kMiB;
  OomEvent e = verdict(p);
  EXPECT_EQ(e.verdict, "spike");
  Program without = p;
  without.scratch = 0;
  expect_right(e, "spike", without);
}

// A forward pass that fails is unwound: its activations are given back at once, which makes no scratch of them.
TEST_F(Oom, ActivationsOfAForwardPassThatFailedAreNoScratch) {
  Maker::Options options;
  options.pool.limit = options.pool.device = 64 * kMiB;
  options.pool.growth = false;
  Maker maker = new_trace(options);
  maker.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", 1);
  for (const char* op : {"compile_loss/mse/range", "compile_loss/mse/add", "gradient_tape/compile_loss/mse/mod"})
    maker.free(maker.alloc({std::string("StatefulPartitionedCall/") + op, "output", 64}).value());  // constants are folded
  std::vector<Handle> made;
  for (const char* layer : {"dense", "dense_1", "dense_2"})
    made.push_back(maker.alloc({fmt::format("StatefulPartitionedCall/sequential/{}/Relu", layer), "output", 18 * kMiB}).value());
  EXPECT_FALSE(maker.alloc({"StatefulPartitionedCall/sequential/dense_3/Relu", "output", 18 * kMiB}).has_value());
  for (const Handle& h : made) maker.free(h);
  maker.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", 1);
  ASSERT_TRUE(maker.finish());
  OomEvent e = opened().ooms().events.at(0);
  EXPECT_EQ(e.verdict, "too big");
  EXPECT_FALSE(cause(e, "spike").holds) << cause(e, "spike").evidence;
  ASSERT_FALSE(e.live_set.empty());
  EXPECT_EQ(e.live_set.front().keys.at(0), "activations");
}

// An eager loop reports a step when its optimizer has run; what repeats before that builds the model. Einsum's result is memory
// that it requested as scratch.
TEST_F(Oom, FirstStepOfAnEagerLoop) {
  Maker::Options options;
  options.pool.limit = options.pool.device = 64 * kMiB;
  options.pool.growth = false;
  Maker maker = new_trace(options);
  for (int weight = 0; weight < 12; ++weight)
    for (const char* op : {"RandomUniform", "Sub", "Mul", "AddV2"}) maker.free(maker.alloc({op, "output", 4096}).value());
  maker.mark(trace::MarkKind::tape, trace::MarkEdge::begin, "tape", 1);
  maker.mark(trace::MarkKind::layer, trace::MarkEdge::begin, "attention", -1);
  EXPECT_TRUE(maker.alloc({"Einsum", "temp", 24 * kMiB}).has_value());
  EXPECT_TRUE(maker.alloc({"MatMul", "output", 16 * kMiB}).has_value());
  EXPECT_FALSE(maker.alloc({"MatMul", "output", 32 * kMiB}).has_value());
  ASSERT_TRUE(maker.finish());
  const Engine engine = opened();
  EXPECT_EQ(engine.steps().steps.size(), 1u) << engine.steps().sentence;
  const OomEvent e = engine.ooms().events.at(0);
  EXPECT_EQ(e.step, 1);
  EXPECT_EQ(e.category, "activations");
  EXPECT_FALSE(cause(e, "leak").holds) << cause(e, "leak").evidence;
  EXPECT_FALSE(cause(e, "spike").holds) << cause(e, "spike").evidence;
  ASSERT_EQ(e.live_set.size(), 2u);
  for (const auto& row : e.live_set) EXPECT_EQ(row.keys.at(0), "activations");
}

// The request decides what is said: the model's own activations are no spike, and the advised batch is the largest that gets by.
TEST_F(Oom, TheRequestSaysWhatItIsForAndWhichBatchFits) {
  const auto train = [&](std::uint64_t percent) {
    Maker::Options options;
    options.pool.limit = options.pool.device = 600 * kMiB;
    options.pool.growth = false;
    Maker maker = new_trace(options);
    const Handle kernel = maker.alloc({"sequential/dense/kernel", "output", 40 * kMiB}).value();
    maker.tag(kernel, trace::Category::parameter, "kernel", "dense");
    maker.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", 1);
    bool served = true;
    for (const char* op : {"conv2d/Relu", "batch_normalization/moments/SquaredDifference"})
      served = served &&
               maker.alloc({fmt::format("StatefulPartitionedCall/sequential/{}", op), "output", percent * 5 * kMiB}).has_value();
    maker.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", 1);
    EXPECT_TRUE(maker.finish());
    return served;
  };
  ASSERT_FALSE(train(100));
  const Ooms ooms = opened().ooms();
  const OomEvent& e = ooms.events.at(0);
  EXPECT_EQ(e.verdict, "too big");
  EXPECT_EQ(e.layer, "batch_normalization");
  EXPECT_NE(e.sentence.find("was requested for activations of batch_normalization"), std::string::npos) << e.sentence;
  const std::string before = "a batch of at most ";
  const std::size_t at = ooms.advice.find(before);
  ASSERT_NE(at, std::string::npos) << ooms.advice;
  const auto percent = static_cast<std::uint64_t>(std::stoul(ooms.advice.substr(at + before.size())));
  EXPECT_NE(ooms.advice.find("set_global_policy"), std::string::npos) << ooms.advice;
  EXPECT_NE(ooms.advice.find("recompute the activations of conv2d"), std::string::npos) << ooms.advice;
  EXPECT_TRUE(train(percent)) << ooms.advice;
  EXPECT_FALSE(train(percent + 2)) << ooms.advice;
}

TEST_F(Oom, ALeakHasNoLargestBatch) {
  Program p;
  p.leak = 4 * kMiB;
  EXPECT_FALSE(verdict(p).replay.has_value());
}

TEST_F(Oom, OtherProcess) {
  Program p;
  p.growth = true;
  p.card = 64 * kMiB;
  p.others = 32 * kMiB;
  p.request = 16 * kMiB;
  OomEvent e = verdict(p);
  EXPECT_EQ(e.verdict, "other process");
  Program without = p;
  without.others = 0;
  expect_right(e, "other process", without);
}

TEST_F(Oom, ProcessThatDiedThere) {
  Program p;
  p.request = 60 * kMiB;
  p.killed = true;
  OomEvent e = verdict(p);
  EXPECT_EQ(e.verdict, "too big");
  EXPECT_FALSE(e.live_set.empty());
}

}  // namespace
}  // namespace vramscope::test
