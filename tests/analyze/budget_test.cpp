// Budgets, and what a filter does to them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/api.h"
#include "analyze/verdict/budget.h"
#include "trace_test.h"
#include "training.h"

namespace vramscope::analyze {
namespace {

constexpr const char* kBudget = R"(# comment
peak = "8MiB"
ooms = 0
fragmentation = 0.25
[layer]
'dense#1' = "1MiB"
"model.encoder.0" = '2MiB'
[category]
"optimizer state" = "2MiB"  # more
)";

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  const auto parsed = parse_budget(text);
  return parsed ? "no error: " + text : parsed.error().message;
}

std::vector<std::string> rules_of(const char* text) {
  const std::vector<BudgetRule> rules = parse_budget(text).value();
  std::vector<std::string> out;
  for (const BudgetRule& r : rules) out.push_back(fmt::format("{} {}.{}={}", r.line, r.table, r.key, r.value));
  return out;
}

TEST(Budget, RulesComeInTheOrderOfTheFile) {
  EXPECT_THAT(rules_of(kBudget),
              testing::ElementsAre("2 .peak=8MiB", "3 .ooms=0", "4 .fragmentation=0.25", "6 layer.dense#1=1MiB",
                                   "7 layer.model.encoder.0=2MiB", "9 category.optimizer state=2MiB"));
}

TEST(Budget, ReadsWhatElseTomlCanSay) {
  const char* text =
      "peak = \"\"\"8MiB\"\"\"\r\nooms = 0x10\r\nend = 1_000\r\ncategory = { gradients = \"1\\u004diB\", inputs = 7 "
      "}\r\nbaseline.peak = '2%'\r\n";
  EXPECT_THAT(rules_of(text), testing::ElementsAre("1 .peak=8MiB", "2 .ooms=16", "3 .end=1000", "4 category.gradients=1MiB",
                                                   "4 category.inputs=7", "5 baseline.peak=2%"));
}

TEST(Budget, ErrorsNameTheLine) {
  EXPECT_THAT(error_of("peak = 1\n[colour]\n"), HasSubstr("line 2: unknown table \"colour\"; expected category"));
  EXPECT_THAT(error_of("peak = 1\npeak\n"), HasSubstr("line 2"));
  EXPECT_THAT(error_of("ooms = 1\npeak = 8MiB\n"), HasSubstr("line 2: peak = 8MiB: "));
  EXPECT_THAT(error_of("ooms = 1\npeak = 8MiB\n"), HasSubstr("as in peak = \"8MiB\""));
  EXPECT_THAT(error_of("peak = 1\npeak = 2\n"), HasSubstr("line 2: peak = 2: "));
  EXPECT_THAT(error_of("peak = 1\n[layer]\nconv.1 = 2\n"), HasSubstr("line 3: conv is a table; put a name with dots in quotes"));
  EXPECT_THAT(error_of("peak = 1\nlayer = 3\n"), HasSubstr("line 2: layer is a table: write [layer]"));
  for (const char* value : {"true", "[1, 2]", "1979-05-27", "\"\""})
    EXPECT_THAT(error_of(fmt::format("ooms = 0\nend = {}\n", value)), HasSubstr("line 2: end must be a number"));
}

TEST(Budget, YamlIsRefusedWithWhatToWrite) {
  for (const char* text :
       {"# limits\npeak: 8MiB\n", "\n---\npeak: 8MiB\n", "\ncategory:\r\n  activations: 1MiB\r\n", "\n\"optimizer state\": 1\n"})
    EXPECT_THAT(error_of(text), HasSubstr("line 2: this is YAML, and budgets are TOML: write peak = \"8MiB\"")) << text;
}

// Each of these goes as deep as its bytes allow.
TEST(Budget, HostileFilesEndInAnError) {
  const auto repeated = [](std::string_view part, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += part;
    return out;
  };
  EXPECT_THAT(error_of(repeated("a.", 500'000) + "a = 1"), HasSubstr("bytes"));
  EXPECT_THAT(error_of(repeated("a.", 1000) + "a = 1"), HasSubstr("line 1: the line is longer than"));
  EXPECT_THAT(error_of(repeated("a.", 500) + "a = 1"), HasSubstr("line 1"));
  EXPECT_THAT(error_of(repeated("[" + repeated("a.", 500) + "a]\n" + repeated("b.", 500) + "b = 1\n", 100)), HasSubstr("line "));
  EXPECT_THAT(error_of("a = " + repeated("[", 1000)), HasSubstr("line 1"));
  EXPECT_THAT(error_of("a = " + repeated("[\n", 100'000)), HasSubstr("line "));
  EXPECT_THAT(error_of(repeated(repeated("a.", 400) + "a = [\n{", 300)), HasSubstr("line "));
  EXPECT_THAT(error_of("a = \"\xff\""), HasSubstr("line 1"));
  for (const char c : {'*', '\\', '\x01', '['}) EXPECT_THAT(error_of(std::string("[") + c + "layer]"), HasSubstr("budget")) << c;
  EXPECT_THAT(error_of(std::string("a = 1\0", 6)), HasSubstr("line 1"));
}

TEST(Budget, CountsMatchingBlocksOnly) {
  const test::TracePath path;
  tracegen::Training t;
  t.leak_bytes = 64u << 10;
  tracegen::Truth truth = tracegen::write_training(path, t).value();
  const Engine engine = test::opened(path);
  auto value = [&](const char* budget, std::string_view where) {
    Check check = analyze::check(engine, budget, nullptr, where).value();
    return check.violations.empty() ? -1.0 : check.violations[0].value;
  };
  EXPECT_EQ(value("peak = '1B'", ""), static_cast<double>(truth.peak));
  EXPECT_EQ(value("peak = '1B'", "category:parameters"), 4.0 * (256u << 10));
  EXPECT_EQ(value("end = '1B'", "line:train.py:31"), static_cast<double>(truth.leaks * t.leak_bytes));
  EXPECT_NEAR(value("growth_per_step = '1B'", ""), static_cast<double>(t.leak_bytes), 1);
  EXPECT_EQ(value("growth_per_step = '1B'", "category:parameters"), -1);
  EXPECT_EQ(value("[category]\nparameters = '1B'", "layer:dense_1"), 256.0 * 1024);
  EXPECT_FALSE(analyze::check(engine, "peak = '1B'", nullptr, "colour:red"));
}

}  // namespace
}  // namespace vramscope::analyze
