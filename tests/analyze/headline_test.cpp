// How bad a finding is, which findings are shown, and the sentence about a run: rules on values, then on generated programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "analyze/api.h"
#include "analyze/framework.h"
#include "analyze/verdict/headline.h"
#include "support/units.h"
#include "trace_test.h"
#include "training.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using tracegen::Handle;
using tracegen::Maker;

Finding finding(const char* id, std::optional<Bytes> at_stake = {}) {
  Finding out;
  out.id = id;
  out.title = std::string(id) + " was found.";
  out.at_stake = at_stake;
  return out;
}

std::vector<std::string> ids(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& f : findings) out.push_back(f.id);
  return out;
}

using Ids = std::vector<std::string>;
constexpr Ending kNormal{.exit_code = 0};
constexpr Ending kKilled{.signal = 9, .step = 41, .inside_step = true};

TEST(Severity, WorstFirstThenBySaving) {
  const std::vector<Finding> mixed = {finding("optimizer-state", 40 * kMiB), finding("empty-regions", 50 * kMiB),
                                      finding("retrace"), finding("leak", 2 * kMiB), finding("oom", 3 * kMiB)};
  EXPECT_EQ(ids(ranked(mixed, kNormal, 100 * kMiB)), (Ids{"oom", "leak", "retrace", "empty-regions", "optimizer-state"}));
  EXPECT_EQ(ids(ranked({finding("retrace"), finding("checkpointing")}, kKilled, kMiB)),
            (Ids{"died", "retrace", "checkpointing"}));
}

TEST(Severity, OnlyWhatFailsOrWillFailIsASignal) {
  for (const Finding& f : ranked({finding("oom"), finding("leak"), finding("held-tensors"), finding("retrace")}, kNormal, kMiB))
    EXPECT_EQ(f.severity, f.id == "retrace" ? "" : "signal") << f.id;
}

TEST(Severity, ASmallSavingIsNotShown) {
  const Bytes peak = 1000 * kMiB;
  EXPECT_EQ(ids(ranked({finding("float64", 11u << 10)}, kNormal, 20u << 10)), Ids{}) << "half of the peak, but a few KiB";
  EXPECT_EQ(ids(ranked({finding("empty-regions", 9 * kMiB)}, kNormal, peak)), Ids{}) << "below 1 %";
  EXPECT_EQ(ids(ranked({finding("empty-regions", 10 * kMiB)}, kNormal, peak)), Ids{"empty-regions"});
  EXPECT_EQ(ids(ranked({finding("leak", 11u << 10)}, kNormal, peak)), Ids{"leak"}) << "it grows";
  EXPECT_EQ(ids(ranked({finding("checkpointing")}, kNormal, peak)), Ids{"checkpointing"}) << "its saving is not known";
}

TEST(Ending, InWords) {
  EXPECT_EQ(ending_words(kKilled), "was killed by SIGKILL in step 41");
  EXPECT_EQ(ending_words({.signal = 11}), "was killed by SIGSEGV");
  EXPECT_EQ(ending_words({.signal = 35}), "was killed by signal 35");
  EXPECT_EQ(ending_words({.exit_code = 1, .step = 9}), "exited with code 1 after step 9");
  EXPECT_EQ(ending_words({.exit_code = 0, .step = 9}), "");
  EXPECT_EQ(ending_words({.signal = 2, .step = 9}), "") << "Ctrl-C";
  EXPECT_EQ(ending_words({}), "") << "a run that is being recorded";
}

TEST(Headline, SaysTheWorstFirst) {
  const std::string need = "Training needs 46.8 MiB on host.";
  const Bytes peak = 48 * kMiB;
  const auto said = [&](std::vector<Finding> findings, const Ending& ending) {
    return headline(need, ranked(std::move(findings), ending, peak), peak);
  };
  EXPECT_EQ(said({}, kNormal), need);
  EXPECT_EQ(said({}, kKilled), "The program was killed by SIGKILL in step 41. " + need);
  EXPECT_EQ(said({finding("leak", 40 * kMiB)}, kNormal), "leak was found.");
  EXPECT_EQ(said({finding("leak", 40 * kMiB)}, kKilled), "leak was found, and the program was killed by SIGKILL in step 41.");
  EXPECT_EQ(said({finding("leak", 40 * kMiB), finding("oom")}, {.exit_code = 1}),
            "oom was found, and the program exited with code 1. leak was found.");
  EXPECT_EQ(said({finding("retrace"), finding("empty-regions", 40 * kMiB)}, kNormal), "retrace was found. " + need);
  EXPECT_EQ(said({finding("pool-took-card", 900 * kMiB)}, kNormal), "pool-took-card was found. " + need);
  EXPECT_EQ(said({finding("optimizer-state", 4 * kMiB)}, kNormal), need);
  EXPECT_EQ(said({finding("checkpointing")}, kNormal), need);
  EXPECT_EQ(said({finding("peak-is-autotuning", 40 * kMiB)}, kNormal), need) << "that sentence says so itself";
}

class HeadlineTest : public TraceTest {
 protected:
  Maker maker(std::uint64_t limit = 1024 * kMiB, trace::Framework framework = trace::Framework::tensorflow,
              bool growth = true) const {
    Maker::Options options;
    options.pool.limit = limit;
    options.pool.growth = growth;
    options.framework = framework;
    return new_trace(options);
  }
  static void step(Maker& m, int number, const std::function<void()>& during) {
    m.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", number);
    during();
    m.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", number);
  }
  // Every text of every answer that gives advice.
  static std::string all_texts(const Engine& engine) {
    const Summary summary = engine.summary();
    std::string out = summary.sentence;
    for (const Finding& f : summary.findings->findings) out += "\n" + f.title + " " + f.cause + " " + f.remedy;
    const Ooms ooms = engine.ooms();
    out += "\n" + ooms.sentence + " " + ooms.advice;
    if (const auto leaks = engine.leaks()) out += "\n" + leaks->sentence + " " + leaks->advice;
    if (const auto fragmentation = engine.fragmentation()) out += "\n" + fragmentation->sentence + " " + fragmentation->advice;
    for (const char* at : {"peak", "end"})
      if (const auto ledger = engine.ledger(at)) out += "\n" + ledger->sentence + " " + ledger->advice;
    return out;
  }
};

// One tensor per step goes into a list; Python looked at it after 12 of 60 steps.
void leak_into_a_list(Maker& m, const std::function<void(int, const std::function<void()>&)>& step) {
  std::vector<Handle> kept;
  for (int s = 1; s <= 60; ++s) {
    step(s, [&] {
      Handle scratch = *m.alloc({"dense/Relu", "output", 2 * kMiB, 0, 1, "", "leak.py", 12});
      kept.push_back(*m.alloc({"mul", "output", kMiB, 0, 1, "", "leak.py", 18}));
      m.free(scratch);
    });
    if (s != 12) continue;
    m.report(trace::HeldTensors{.name = m.string("history"),
                                .container = m.string("list"),
                                .owner = m.string("global of __main__ (leak.py)"),
                                .file = m.string("/data/leak.py"),
                                .line = 20,
                                .count = 12,
                                .bytes = 12 * kMiB});
    for (const Handle& h : kept) m.tag(h, trace::Category::unknown, "kept in history (/data/leak.py:20)", "");
  }
}

TEST_F(HeadlineTest, ALeakHasOnePlaceAndOneCount) {
  Maker m = maker();
  leak_into_a_list(m, [&](int s, const auto& during) { step(m, s, during); });
  ASSERT_TRUE(m.finish());
  const Engine engine = opened();
  const std::string texts = all_texts(engine);
  EXPECT_EQ(texts.find("leak.py:18"), std::string::npos) << texts;
  EXPECT_NE(engine.leaks()->sentence.find("kept by history (leak.py:20)"), std::string::npos) << texts;
  EXPECT_EQ(texts.find("12 tensors"), std::string::npos) << texts;
  EXPECT_NE(engine.leaks()->advice.find("history holds 60 tensors"), std::string::npos) << texts;
  const Findings findings = engine.findings();
  ASSERT_EQ(findings.findings[0].id, "held-tensors");
  EXPECT_EQ(findings.findings[0].title, engine.leaks()->sentence);
  EXPECT_EQ(findings.findings[0].cause, "A list of global of __main__ (leak.py) holds 60 tensors at the end.");
  EXPECT_EQ(engine.summary().sentence, findings.findings[0].title);
}

TEST_F(HeadlineTest, KilledWhileLeaking) {
  Maker m = maker();
  leak_into_a_list(m, [&](int s, const auto& during) { step(m, s, during); });
  m.setting("process.signal", "9");
  ASSERT_TRUE(m.finish());
  EXPECT_EQ(opened().summary().sentence,
            "Leak: 1.0 MiB per step since step 2, 59.0 MiB so far, kept by history (leak.py:20), and the program was killed by "
            "SIGKILL after step 60.");
}

// A list that the program empties again is not a leak, although Python saw it grow.
TEST_F(HeadlineTest, AListThatIsEmptiedIsNoLeak) {
  Maker m = maker();
  std::vector<Handle> kept;
  for (int s = 1; s <= 60; ++s)
    step(m, s, [&] {
      kept.push_back(*m.alloc({"mul", "output", kMiB, 0, 1, "", "eval.py", 18}));
      if (s == 12)
        m.report(trace::HeldTensors{.name = m.string("batch"),
                                    .container = m.string("list"),
                                    .file = m.string("/data/eval.py"),
                                    .line = 20,
                                    .count = 4,
                                    .bytes = 4 * kMiB});
      if (s % 4 != 0) return;
      for (const Handle& h : kept) m.free(h);
      kept.clear();
    });
  ASSERT_TRUE(m.finish());
  ASSERT_EQ(opened().leaks()->verdict, "not growing");
  for (const Finding& f : opened().findings().findings) EXPECT_NE(f.id, "held-tensors") << f.title;
}

// A PyTorch program whose last step asks for workspace that does not fit.
TEST_F(HeadlineTest, AStepThatRanOutOfMemoryIsNotComparedAndAdviceIsOfTheFramework) {
  Maker m = maker(64 * kMiB, trace::Framework::pytorch, false);
  m.alloc({"aten::empty", "output", 20 * kMiB});
  for (int s = 1; s <= 9; ++s) step(m, s, [&] { m.free(*m.alloc({"aten::mm", "output", 8 * kMiB})); });
  step(m, 10, [&] {
    Handle more = *m.alloc({"aten::cudnn_convolution", "", 30 * kMiB});
    EXPECT_FALSE(m.alloc({"aten::cudnn_convolution", "", 40 * kMiB}));
    m.free(more);
  });
  for (int s = 11; s <= 40; ++s) step(m, s, [&] { m.free(*m.alloc({"aten::mm", "output", 8 * kMiB})); });
  ASSERT_TRUE(m.finish());
  const Engine engine = opened();
  const std::string texts = all_texts(engine);
  EXPECT_TRUE(engine.summary().sentence.starts_with("Out of memory in step 10: a request for 40.0 MiB did not fit")) << texts;
  for (const char* word : {"TF_", "tf.", "autotuning, not", "was autotuning", "every later step", "warm-up, not"})
    EXPECT_EQ(texts.find(word), std::string::npos) << word << "\n" << texts;
}

TEST_F(HeadlineTest, AWarmUpThatRanOutOfMemoryIsNoAutotuning) {
  Maker m = maker(64 * kMiB, trace::Framework::pytorch, false);
  step(m, 1, [&] {
    Handle most = *m.alloc({"aten::cudnn_convolution", "", 50 * kMiB});
    EXPECT_FALSE(m.alloc({"aten::cudnn_convolution", "", 40 * kMiB}));
    m.free(most);
  });
  for (int s = 2; s <= 40; ++s) step(m, s, [&] { m.free(*m.alloc({"aten::mm", "output", 8 * kMiB})); });
  ASSERT_TRUE(m.finish());
  const Engine engine = opened();
  for (const Finding& f : engine.findings().findings) EXPECT_FALSE(f.id.starts_with("peak-is-")) << f.title;
  EXPECT_EQ(engine.overview().sentence, "Training needs 8.0 MiB on GPU 0. The " + support::format_size(m.peak()) +
                                            " peak was reached in step 1, which ran out of memory.");
}

// Each framework that has advice of its own gives no other framework's.
TEST_F(HeadlineTest, TheLedgerAdvisesForTheRecordedFramework) {
  for (const auto id : {trace::Framework::tensorflow, trace::Framework::pytorch}) {
    Maker m = maker(1024 * kMiB, id, false);
    Handle a = *m.alloc({"Relu", "output", 8 * kMiB});
    m.device_sample(0, 1024 * kMiB, 1040 * kMiB, 1024 * kMiB);
    m.free(a);
    ASSERT_TRUE(m.finish());
    const auto ledger = opened().ledger("peak");
    EXPECT_EQ(ledger->advice, remedy_for(Remedy::return_cached_memory, id));
    EXPECT_EQ(ledger->advice.contains("tf."), id == trace::Framework::tensorflow) << ledger->advice;
    EXPECT_EQ(ledger->advice.contains("torch."), id == trace::Framework::pytorch) << ledger->advice;
  }
}

// Holes between blocks that live on, but no request that they stop: no word about fragmentation, at the end neither.
TEST_F(HeadlineTest, HolesThatNoRequestMetAreNotFragmentation) {
  Maker m = maker(1024 * kMiB, trace::Framework::tensorflow, false);
  std::vector<Handle> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(*m.alloc({"MatMul", "output", kMiB}));
  for (int s = 1; s <= 10; ++s) step(m, s, [&] { m.free(*m.alloc({"MatMul", "output", 4 * kMiB})); });
  for (std::size_t i = 0; i < blocks.size(); i += 2) m.free(blocks[i]);
  step(m, 11, [&] { m.free(*m.alloc({"MatMul", "output", 4 * kMiB})); });
  for (std::size_t i = 1; i < blocks.size(); i += 2) m.free(blocks[i]);
  ASSERT_TRUE(m.finish());
  const auto fragmentation = opened().fragmentation();
  EXPECT_EQ(fragmentation->sentence, "Fragmentation cost nothing: holes neither stopped a request nor made the pool grow.");
  EXPECT_EQ(fragmentation->advice, "");
  const auto ledger = opened().ledger("end");
  const auto pool = std::ranges::find(ledger->lines, "pool regions", &LedgerLine::name);
  EXPECT_EQ(pool->note, "") << "nothing is live";
}

// Two empty regions and a request larger than each: the pool grows, but nothing is in the way.
TEST_F(HeadlineTest, AnEmptyPoolIsNotFragmented) {
  Maker m = maker();
  Handle small = *m.alloc({"Relu", "output", 2 * kMiB}), larger = *m.alloc({"Relu", "output", 4 * kMiB});
  m.free(small);
  m.free(larger);
  m.free(*m.alloc({"MatMul", "output", 5 * kMiB}));
  ASSERT_TRUE(m.finish());
  EXPECT_TRUE(opened().fragmentation()->grown.empty());
}

}  // namespace
}  // namespace vramscope::test
