#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "analyze/api.h"
#include "analyze/query/filter_text.h"
#include "trace_test.h"
#include "training.h"

namespace vramscope::test {
namespace {

using namespace analyze;

class FilterLanguage : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    path_ = new TracePath;
    tracegen::Training t;
    t.leak_bytes = 4096;
    ASSERT_TRUE(tracegen::write_training(*path_, t));
    engine_ = new Engine(opened(*path_));
  }
  static void TearDownTestSuite() {
    delete engine_;
    delete path_;
  }
  static Bytes bytes(const std::string& where, const std::string& at = "end") {
    LiveRequest request;
    request.at = at;
    request.where = where;
    auto live = engine_->live(request);
    EXPECT_TRUE(live) << (live ? "" : live.error().message);
    return live ? live->total : 0;
  }
  static std::string error(const std::string& where) {
    auto ok = engine_->check_filter(where);
    return ok ? "" : ok.error().message;
  }
  static inline TracePath* path_ = nullptr;
  static inline Engine* engine_ = nullptr;
};

constexpr Bytes kWeights = 4 * (256u << 10), kLeak = 47 * 4096;

TEST_F(FilterLanguage, FieldsAndJunctions) {
  Bytes all = bytes("");
  EXPECT_EQ(all, 2 * kWeights + kLeak);  // weights, slots, leak
  EXPECT_EQ(bytes("category:parameters"), kWeights);
  EXPECT_EQ(bytes("category:parameters or category:optimizer_state"), 2 * kWeights);
  EXPECT_EQ(bytes("not (category:parameters or category:\"optimizer state\")"), kLeak);
  EXPECT_EQ(bytes("category:parameters layer:dense_0"), kWeights / 4);
  EXPECT_EQ(bytes("category:parameters and layer:dense_*"), kWeights);
  EXPECT_EQ(bytes("size<8KiB"), kLeak);
  EXPECT_EQ(bytes("size>=256KiB"), 2 * kWeights);
  EXPECT_EQ(bytes("line:train.py:31"), kLeak);
  EXPECT_EQ(bytes("line:train.py"), kLeak);
  EXPECT_EQ(bytes("op:/random.*form/"), kWeights);
  EXPECT_EQ(bytes("op:Identity"), kLeak);
  EXPECT_EQ(bytes("identity"), kLeak);
  EXPECT_EQ(bytes("known:reported"), 2 * kWeights);
  EXPECT_EQ(bytes("name:dense_1/kernel"), kWeights / 4);
  EXPECT_EQ(bytes("born:step1"), kWeights);
  EXPECT_EQ(bytes("born:step20"), 4096u);
  EXPECT_EQ(bytes("age>2steps op:Identity"), kLeak - 2 * 4096);
  EXPECT_EQ(bytes("live@step:3 op:Identity"), 1u * 4096);
  EXPECT_EQ(bytes("region:0") + bytes("region:1") + bytes("region:2"), all);
  EXPECT_EQ(bytes("dtype:float32"), all);
  EXPECT_EQ(bytes("pool:GPU_0_bfc"), all);
  EXPECT_EQ(bytes("device:\"GPU 1\""), 0u);
}

// The page says the same about them in a report (ui/src/report/filter.test.ts).
TEST_F(FilterLanguage, ErrorsSayWhatIsWrong) {
  std::ifstream file(VS_FILTER_ERRORS);
  std::size_t lines = 0;
  for (std::string filter, message; std::getline(file, filter, '\t') && std::getline(file, message); ++lines)
    EXPECT_TRUE(error(filter).starts_with(message)) << filter << ": " << error(filter);
  EXPECT_EQ(lines, 12u);
}

TEST_F(FilterLanguage, ErrorsNameTheWord) {
  EXPECT_NE(error("colour:red").find("unknown field \"colour\""), std::string::npos);
  EXPECT_NE(error("size>big").find("size>big"), std::string::npos);
  EXPECT_NE(error("category:parmeters").find("unknown category"), std::string::npos);
  EXPECT_NE(error("(layer:a").find("parenthesis"), std::string::npos);
  EXPECT_NE(error("layer:a and").find("and"), std::string::npos);
  EXPECT_NE(error("op:/(/").find("regular expression"), std::string::npos);
  EXPECT_NE(error("op:/abc").find("no closing quote or slash in \"/abc\""), std::string::npos);
  EXPECT_NE(error("live@tomorrow").find("invalid instant"), std::string::npos);
  EXPECT_NE(error("or").find("or"), std::string::npos);
  EXPECT_NE(error(")").find(')'), std::string::npos);
  EXPECT_NE(error(std::string(5000, '(')).find("deep"), std::string::npos);
  EXPECT_EQ(error("layer:a or (not layer:b and size>1MiB)"), "");
}

TEST(FilterTerm, MatchesTheTextThatItWasMadeOf) {
  EXPECT_EQ(filter_term("layer", "encoder/dense_1"), "layer:encoder/dense_1");
  EXPECT_EQ(filter_term("layer", "my layer"), "layer:\"my layer\"");
  for (const std::string text : {"encoder/dense_1", "my layer", "f(x)", "say \"hi\"", "a\\b c\\", "\\\"", "/half", "tab\there"}) {
    const auto words = split_filter(filter_term("layer", text) + " size>1");
    ASSERT_TRUE(words) << text;
    ASSERT_EQ(words->size(), 2u) << text;
    EXPECT_EQ(words->front().field, "layer");
    EXPECT_EQ(words->front().value, text);
  }
}

TEST_F(FilterLanguage, Completion) {
  auto fields = engine_->complete("la");
  ASSERT_EQ(fields.size(), 1u);
  EXPECT_EQ(fields[0].text, "layer:");
  auto layers = engine_->complete("size>1 layer:dense");
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_GT(layers[0].bytes, 0u);
}

}  // namespace
}  // namespace vramscope::test
