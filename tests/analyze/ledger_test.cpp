// The ledger between two samples of the card, against what the program did at that moment.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include <fmt/format.h>

#include "analyze/api.h"
#include "trace_test.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using tracegen::Handle;
using tracegen::Maker;
constexpr std::uint64_t kContext = 300 * kMiB, kOthers = 100 * kMiB, kCard = 4096 * kMiB;

class LedgerTest : public TraceTest {
 protected:
  static LedgerLine line(const Ledger& ledger, const std::string& name) {
    return *std::ranges::find(ledger.lines, name, &LedgerLine::name);
  }
};

// The pool grows and shrinks between samples that are seconds apart.
TEST_F(LedgerTest, IsExactBetweenSamples) {
  Maker::Options options;
  options.pool.limit = options.pool.device = kCard;
  options.pool.growth = true;
  options.us_per_event = 20'000;
  Maker m = new_trace(options);
  std::map<std::uint64_t, std::uint64_t> held;  // by moment: bytes of the pool's regions
  std::mt19937_64 random(7);
  std::vector<Handle> live;
  const auto sample = [&] {
    const std::uint64_t mine = m.pool().pool() + kContext;
    m.device_sample(0, mine + kOthers, kCard, mine);
  };
  for (int i = 0; i < 400; ++i) {
    if (live.empty() || random() % 3 != 0) {
      live.push_back(m.alloc({"Relu", "output", (1 + random() % 64) * kMiB / 8}).value());
    } else {
      const std::size_t at = random() % live.size();
      m.free(live[at]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    held[m.events()] = m.pool().pool();
    if (i % 60 == 30) sample();
  }
  ASSERT_TRUE(m.finish());
  const Engine engine = opened();
  std::uint64_t differ = 0;
  for (const auto& [moment, bytes] : held) {
    const Ledger ledger = engine.ledger(fmt::format("moment:{}", moment)).value();
    const LedgerLine used = line(ledger, "device used"), process = line(ledger, "this process");
    EXPECT_EQ(used.bytes, bytes + kContext + kOthers) << "moment " << moment << ": " << used.note;
    EXPECT_EQ(used.residual, 0);
    EXPECT_EQ(process.bytes, bytes + kContext);
    differ += used.note.contains("in between") ? 1u : 0u;
  }
  EXPECT_GT(differ, 50u) << "the pool did not change between samples, so nothing was tested";
}

// The pool grows while the card is sampled: nobody knows whether the sample has it. By how much the lines may be off is a number.
TEST_F(LedgerTest, WhatChangedDuringTheSampleIsTheUncertainty) {
  Maker::Options options;
  options.pool.limit = options.pool.device = kCard;
  options.pool.growth = true;
  options.us_per_event = 1'000;
  Maker m = new_trace(options);
  (void)m.alloc({"Relu", "output", 600 * kMiB});
  const std::uint64_t before = m.pool().pool();
  (void)m.alloc({"Relu", "output", 900 * kMiB});
  const std::uint64_t after = m.pool().pool();
  m.device_sample(0, before + kContext, kCard, before + kContext);
  ASSERT_TRUE(m.finish());
  const Ledger ledger = opened().ledger("peak").value();
  const LedgerLine used = line(ledger, "device used"), process = line(ledger, "this process");
  EXPECT_EQ(used.uncertain, after);  // the first growth is as close to the sample as the second one
  EXPECT_EQ(process.uncertain, used.uncertain);
  EXPECT_LE(after + kContext, *used.bytes + used.uncertain) << used.note;
  EXPECT_TRUE(used.note.contains("may be off by")) << used.note;
  EXPECT_EQ(line(ledger, "pool regions").uncertain, 0u);  // known from the events alone
}

// The sample is from before the last growth: the sentence must not say that the pool is larger than what is used.
TEST_F(LedgerTest, TheSentenceUsesTheSameFigures) {
  Maker::Options options;
  options.pool.limit = options.pool.device = kCard;
  options.pool.growth = true;
  options.us_per_event = 200'000;
  Maker m = new_trace(options);
  (void)m.alloc({"Relu", "output", 600 * kMiB});
  const std::uint64_t before = m.pool().pool();
  m.device_sample(0, before + kContext, kCard, before + kContext);
  for (int i = 0; i < 3; ++i) (void)m.alloc({"Relu", "output", 4096});
  (void)m.alloc({"Relu", "output", 900 * kMiB});
  const std::uint64_t after = m.pool().pool();
  ASSERT_GT(after, before);
  ASSERT_TRUE(m.finish());
  const Ledger ledger = opened().ledger("peak").value();
  EXPECT_EQ(line(ledger, "device used").bytes, after + kContext);
  EXPECT_TRUE(line(ledger, "device used").note.contains("in between is added")) << line(ledger, "device used").note;
}

}  // namespace
}  // namespace vramscope::test
