// Leak verdicts on generated programs with fresh seeds, and the statistics below them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "analyze/api.h"
#include "analyze/verdict/leak_origin.h"
#include "analyze/verdict/series.h"
#include "trace_test.h"
#include "training.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using tracegen::Training;

std::uint64_t fresh_seed() {
  const char* given = std::getenv("VRAMSCOPE_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

class Cases {
 public:
  explicit Cases(std::uint64_t seed) : random_(seed) {}
  std::mt19937_64& random() { return random_; }
  double uniform(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }
  std::int64_t log_uniform(double low, double high) {
    return static_cast<std::int64_t>(std::llround(std::exp(uniform(std::log(low), std::log(high)))));
  }

  // A small program: many of them are run.
  Training base(std::int64_t steps) {
    Training t;
    t.seed = random_();
    t.steps = steps;
    t.layers = 2;
    t.small_blocks = 1;
    t.tags = false;
    t.layer_bytes = 1u << 20;
    t.weight_bytes = 64u << 10;
    t.maker.pool.exact = true;
    t.variable_shapes = random_() % 3 == 0;
    if (random_() % 2 == 0) {  // what is left after a step wanders, from not at all correlated to hardly ever returning
      t.noise = uniform(4e3, 1e5);
      t.noise_memory = std::array{0.0, 0.5, 0.9, 0.98}[random_() % 4];
    }
    if (random_() % 4 == 0) t.evaluate_every = 10;
    return t;
  }

  Leaks verdict(const Training& t, tracegen::Truth& truth) {
    const TracePath path;
    truth = tracegen::write_training(path, t).value();
    return Engine::open(path, {.keep_index = false, .threads = 1}).value().leaks().value();
  }

 private:
  std::mt19937_64 random_;
};

// Long because one table sums up four kinds of programs.
TEST(LeakVerdicts, OnFreshlyGeneratedPrograms) {
  std::uint64_t seed = fresh_seed();
  Cases cases(seed);
  std::map<std::string, std::map<std::string, int>> table;  // truth -> verdict -> count
  int called = 0, called_too_much = 0;
  tracegen::Truth truth;
  auto note = [&](const std::string& what, const Leaks& leaks, const Training& t) {
    table[what][leaks.verdict] += 1;
    bool wrong = (what == "clean" && leaks.verdict == "growing") ||
                 ((what == "leak" || what == "larger block") && leaks.verdict != "growing") ||
                 (what == "saturates later" && leaks.verdict != "cannot tell");
    if (wrong)
      std::printf(
          "  %s -> %s: seed %llu steps %lld noise %.0f memory %.2f shapes %d leak %llu every %lld from %lld spread %.2f "
          "saturating %llu/%.0f; %s\n",
          what.c_str(), leaks.verdict.c_str(), static_cast<unsigned long long>(t.seed), static_cast<long long>(t.steps), t.noise,
          t.noise_memory, t.variable_shapes, static_cast<unsigned long long>(t.leak_bytes), static_cast<long long>(t.leak_every),
          static_cast<long long>(t.leak_from), t.leak_spread, static_cast<unsigned long long>(t.saturating_bytes),
          t.saturating_steps, leaks.sentence.c_str());
  };
  for (int i = 0; i < 1000; ++i) {
    Training t = cases.base(cases.log_uniform(5, i % 50 == 0 ? 5000 : 300));
    switch (cases.random()() % 4) {
      case 0:
        t.warmup_steps = 1 + static_cast<std::int64_t>(cases.random()() % 5);
        t.cache_bytes = 64u << 10;
        break;
      case 1:
        if (t.steps >= 40) {
          t.saturating_bytes = 1u << 20;  // filled well before the end
          t.saturating_steps = static_cast<double>(t.steps) / 40;
        }
        break;
      default:
        break;
    }
    note("clean", cases.verdict(t, truth), t);
  }
  for (int i = 0; i < 500; ++i) {
    Training t = cases.base(cases.log_uniform(5, i % 50 == 0 ? 5000 : 400));
    t.leak_bytes = static_cast<std::uint64_t>(cases.log_uniform(1024, 30e3)) / 256 * 256;
    if (cases.random()() % 3 == 0)
      t.leak_from = 2 + static_cast<std::int64_t>(cases.random()() % static_cast<std::uint64_t>(t.steps / 2));
    if (cases.random()() % 4 == 0) t.leak_every = 2 + static_cast<std::int64_t>(cases.random()() % 4);
    if (cases.random()() % 2 == 0) {
      t.leak_bytes = std::max<std::uint64_t>(t.leak_bytes, 16u << 10);
      t.leak_spread = 0.25;
      t.leak_memory = std::array{0.0, 0.3, 0.6}[cases.random()() % 3];
    }
    Leaks leaks = cases.verdict(t, truth);
    if (truth.leaks < 4) continue;  // nothing that repeats was seen
    note(truth.leaks >= 12 ? "leak" : "leak, hardly seen", leaks, t);
    if (leaks.verdict != "growing") continue;
    // What wanders may by chance rise throughout a short program: then a second origin is called, and the sum is too high.
    bool alone = leaks.rows.size() == 1 && leaks.rows[0].op == "Identity";
    called += 1;
    called_too_much += alone ? 0 : 1;
    double rate = static_cast<double>(t.leak_bytes) / static_cast<double>(t.leak_every);
    if (alone && t.leak_spread == 0 && t.leak_every == 1) {
      EXPECT_NEAR(leaks.bytes_per_step, rate, rate * 0.01) << "seed " << t.seed;
    }
    EXPECT_LE(leaks.low, leaks.bytes_per_step);
    EXPECT_GE(leaks.high, leaks.bytes_per_step);
  }
  for (int i = 0; i < 150; ++i) {
    Training t = cases.base(cases.log_uniform(24, 300));
    t.saturating_bytes = 2u << 20;
    t.saturating_steps = static_cast<double>(t.steps) * cases.uniform(0.15, 1.5);
    note("saturates later", cases.verdict(t, truth), t);
  }
  for (int i = 0; i < 100; ++i) {  // one block that is replaced by a larger one: as many blocks as before, more bytes
    Training t = cases.base(cases.log_uniform(16, 300));
    t.growing_block = static_cast<std::uint64_t>(cases.log_uniform(1024, 30e3)) / 256 * 256;
    Leaks leaks = cases.verdict(t, truth);
    note("larger block", leaks, t);
    if (leaks.verdict == "growing") {
      EXPECT_NEAR(leaks.bytes_per_step, static_cast<double>(t.growing_block), static_cast<double>(t.growing_block) * 0.01)
          << "seed " << t.seed;
    }
  }
  std::printf("seed %llu (VRAMSCOPE_SEED repeats it)\n%-20s %10s %12s %12s\n", static_cast<unsigned long long>(seed),
              "truth \\ verdict", "growing", "not growing", "cannot tell");
  for (auto& [what, row] : table)
    std::printf("%-20s %10d %12d %12d\n", what.c_str(), row["growing"], row["not growing"], row["cannot tell"]);
  std::printf("%d of %d leaks were called with another origin\n", called_too_much, called);

  EXPECT_LE(table["clean"]["growing"], 10);  // 1 % of 1,000
  EXPECT_LE(called_too_much, called / 100);
  int leaks = table["leak"]["growing"] + table["leak"]["not growing"] + table["leak"]["cannot tell"];
  EXPECT_GE(table["leak"]["growing"], leaks * 95 / 100);
  EXPECT_LE(table["saturates later"]["growing"] + table["saturates later"]["not growing"], 150 * 5 / 100);
  EXPECT_EQ(table["leak, hardly seen"]["not growing"], 0);
  EXPECT_GE(table["larger block"]["growing"], 95);
}

// At exit a program frees everything, its leaks too. If nothing marks the end of the last step, these frees do not belong to it.
TEST(LeakVerdicts, WhatIsFreedAtExitDoesNotHideALeak) {
  Cases cases(1);
  tracegen::Truth truth;
  for (bool marks : {false, true}) {
    Training t = cases.base(50);
    t.marks = t.instants = marks;
    t.noise = 0;
    t.evaluate_every = 0;
    t.variable_shapes = false;
    t.teardown = true;
    Leaks clean = cases.verdict(t, truth);
    EXPECT_EQ(clean.verdict, "not growing") << clean.sentence;
    t.leak_bytes = 4096;
    Leaks leak = cases.verdict(t, truth);
    EXPECT_EQ(leak.verdict, "growing") << leak.sentence;
    EXPECT_NEAR(leak.bytes_per_step, 4096, 1) << leak.sentence;
  }
}

// "Kept by 9 steps, but 8 are needed" would not be a reason.
TEST(LeakVerdicts, TooFewGrowthsAreFewerThanNeeded) {
  Cases cases(1);
  tracegen::Truth truth;
  Training t = cases.base(9);
  t.noise = 0;
  t.evaluate_every = 0;
  t.leak_bytes = 4096;
  Leaks leaks = cases.verdict(t, truth);
  EXPECT_EQ(leaks.verdict, "cannot tell") << leaks.sentence;
  EXPECT_NE(leaks.why.find("growth was seen in 7 steps and 8 are needed"), std::string::npos) << leaks.why;
}

// Leaks that vary: in size, with neighbors alike, or by chance. (Where each step leaks the same, the interval has no width.)
TEST(LeakVerdicts, IntervalCoversTheTruth) {
  std::uint64_t seed = fresh_seed();
  Cases cases(seed);
  tracegen::Truth truth;
  int covered = 0, intervals = 0;
  while (intervals < 3000) {
    Training t = cases.base(cases.log_uniform(16, 300));
    t.leak_bytes = static_cast<std::uint64_t>(cases.log_uniform(16e3, 60e3)) / 256 * 256;
    t.leak_spread = 0.25;
    t.leak_memory = std::array{0.0, 0.3, 0.6}[cases.random()() % 3];
    if (cases.random()() % 4 == 0) {
      t.leak_memory = 0;
      t.leak_chance = cases.uniform(0.3, 0.9);
    }
    Leaks leaks = cases.verdict(t, truth);
    if (leaks.verdict != "growing") continue;
    double rate = static_cast<double>(t.leak_bytes) * t.leak_chance;
    intervals += 1;
    covered += leaks.low <= rate && rate <= leaks.high ? 1 : 0;
  }
  std::printf("seed %llu (VRAMSCOPE_SEED repeats it): the 95 %% interval covers the true rate in %.1f %% of %d programs\n",
              static_cast<unsigned long long>(seed), 100.0 * covered / intervals, intervals);
  EXPECT_GE(covered, intervals * 93 / 100);
  EXPECT_LE(covered, intervals * 97 / 100);
}

// The interval itself, on many more series than programs could give.
TEST(LeakStatistics, MeanIntervalCoversWhatItSays) {
  std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  int covered = 0, all = 0;
  for (double phi : {0.0, 0.3, 0.6, 0.8})
    for (std::size_t n : {12u, 20u, 40u, 100u, 400u, 2000u})
      for (int r = 0; r < 400; ++r) {
        std::vector<double> x(n);
        double z = normal(random);
        for (double& v : x) {
          z = phi * z + std::sqrt(1 - phi * phi) * normal(random);
          v = 1000 * (1 + 0.3 * z);
        }
        Interval i = mean_interval(x);
        covered += i.low <= 1000 && 1000 <= i.high;
        ++all;
      }
  double share = static_cast<double>(covered) / all;
  std::printf("seed %llu: %.2f %% of %d intervals cover the mean\n", static_cast<unsigned long long>(seed), 100 * share, all);
  EXPECT_GE(share, 0.93);
  EXPECT_LE(share, 0.97);
}

// Layers that are unfrozen, a larger model in the next cell of a notebook: kept once, not in every step.
TEST(LeakVerdicts, ARateWhoseIntervalReachesZeroIsNoLeak) {
  Origin origin;
  origin.kept.assign(60, 0);
  origin.level.assign(60, 0);
  for (std::size_t step = 2; step < 59; step += 4) origin.kept[step] = 256;
  origin.kept_blocks = 15;
  EXPECT_EQ(judge(origin, 60).state, OriginVerdict::growing);
  origin.kept[34] = 200e6;
  EXPECT_NE(judge(origin, 60).state, OriginVerdict::growing);
}

TEST(LeakStatistics, ConstantSeriesHasNoWidth) {
  std::vector<double> x(20, 4096);
  Interval i = mean_interval(x);
  EXPECT_NEAR(i.low, 4096, 1e-6);
  EXPECT_NEAR(i.high, 4096, 1e-6);
}

TEST(LeakStatistics, TrendSeesAFallAndNoneInNoise) {
  std::vector<double> fall;
  for (int i = 0; i < 30; ++i) fall.push_back(1000 * std::exp(-i / 20.0));
  EXPECT_LT(trend_of(fall).t, -5);
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  int alarms = 0;
  for (int r = 0; r < 500; ++r) {
    std::vector<double> x(60);
    double z = 0;
    for (double& v : x) v = z = 0.7 * z + normal(random);
    alarms += std::abs(trend_of(x).t) > 4;
  }
  EXPECT_LE(alarms, 10);
}

}  // namespace
}  // namespace vramscope::test
