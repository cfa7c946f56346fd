// Budgets in TOML and in YAML, and what a filter does to them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "analyze/api.h"
#include "analyze/budget.h"
#include "training.h"

namespace vramscope::analyze {
namespace {

namespace fs = std::filesystem;

constexpr const char* kToml = R"(# comment
peak = "8MiB"
ooms = 0
[category]
"optimizer state" = "2MiB"  # more
[layer]
'dense#1' = "1MiB"
)";
constexpr const char* kYaml = R"(---
# comment
peak: 8MiB
category:
  "optimizer state": 2MiB  # more
layer:
  'dense#1': "1MiB"
ooms: 0
)";

std::map<std::string, std::string> rules(const char* text) {
  std::map<std::string, std::string> out;
  std::vector<BudgetRule> parsed = parse_budget(text).value();
  for (const BudgetRule& r : parsed) out[r.table + "." + r.key] = r.value;
  return out;
}

TEST(Budget, TomlAndYamlSayTheSame) {
  EXPECT_EQ(rules(kToml), rules(kYaml));
  EXPECT_EQ(rules(kYaml).at("category.optimizer state"), "2MiB");
  EXPECT_EQ(rules(kYaml).at("layer.dense#1"), "1MiB");
  EXPECT_EQ(rules(kYaml).at(".ooms"), "0");
}

TEST(Budget, ErrorsNameTheLine) {
  for (const char* text : {"peak = 1\n[colour]\n", "peak: 1\ncolour:\n  red: 1\n", "peak: 1\npeak\n", "peak: 1\n: 3\n"}) {
    auto parsed = parse_budget(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("line 2"), std::string::npos) << parsed.error().message;
  }
}

TEST(Budget, CountsMatchingBlocksOnly) {
  fs::path path = fs::temp_directory_path() / ("vs-budget-" + std::to_string(::getpid()) + ".vram");
  tracegen::Training t;
  t.leak_bytes = 64u << 10;
  tracegen::Truth truth = tracegen::write_training(path, t).value();
  OpenOptions options;
  options.keep_index = false;
  Engine engine = Engine::open(path, options).value();
  fs::remove(path);
  auto value = [&](const char* budget, std::string_view where) {
    Check check = analyze::check(engine, budget, nullptr, where).value();
    return check.violations.empty() ? -1.0 : check.violations[0].value;
  };
  EXPECT_EQ(value("peak: 1B", ""), static_cast<double>(truth.peak));
  EXPECT_EQ(value("peak: 1B", "category:parameters"), 4.0 * (256u << 10));
  EXPECT_EQ(value("end: 1B", "line:train.py:31"), static_cast<double>(truth.leaks * t.leak_bytes));
  EXPECT_NEAR(value("growth_per_step: 1B", ""), static_cast<double>(t.leak_bytes), 1);
  EXPECT_EQ(value("growth_per_step: 1B", "category:parameters"), -1);
  EXPECT_EQ(value("category:\n  parameters: 1B", "layer:dense_1"), 256.0 * 1024);
  EXPECT_FALSE(analyze::check(engine, "peak: 1B", nullptr, "colour:red"));
}

}  // namespace
}  // namespace vramscope::analyze
