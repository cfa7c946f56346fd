#include "serve/answer.h"

#include <gtest/gtest.h>

#include <limits>

#include "serve/params.h"

namespace vramscope::serve {

namespace {

std::string json_of(const std::string& answer) {
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(answer.at(i))); };
  return answer.substr(8, byte(4) | byte(5) << 8 | byte(6) << 16 | byte(7) << 24);
}

TEST(AnswerWriter, SeparatesAndEscapes) {
  AnswerWriter out;
  out.begin_object();
  out.key("a\"b");
  out.text("line\nend \xff");
  out.key("n");
  out.begin_list();
  out.number(std::uint64_t{1});
  out.number(std::int64_t{-2});
  out.number(0.5);
  out.number(std::numeric_limits<double>::quiet_NaN());
  out.null();
  out.boolean(true);
  out.end_list();
  out.key("e");
  out.begin_object();
  out.end_object();
  out.end_object();
  EXPECT_EQ(json_of(out.finish()), R"({"a\"b":"line\u000aend \ufffd","n":[1,-2,0.5,null,null,true],"e":{}})");
}

TEST(AnswerWriter, WholeColumnsAreDifferences) {
  AnswerWriter out;
  out.begin_list();
  out.column({5, 5, 3, 303});  // the same bytes as in ui/src/rpc/decode.test.ts
  out.end_list();
  const std::string answer = out.finish();
  EXPECT_EQ(json_of(answer), R"([{"$":[0,4,"d"]}])");
  EXPECT_EQ(answer.substr(8 + json_of(answer).size()), std::string("\x0a\x00\x03\xd8\x04", 5));
}

TEST(AnswerWriter, OtherColumnsAreDoubles) {
  AnswerWriter out;
  out.column({0.25, std::numeric_limits<double>::quiet_NaN()});
  const std::string answer = out.finish();
  EXPECT_EQ(json_of(answer), R"({"$":[0,2,"f"]})");
  EXPECT_EQ(answer.size(), 8 + json_of(answer).size() + 16);
}

TEST(Params, AreUnescapedAndChecked) {
  const Params params = parse_query("a=x%20y%2Bz&n=12&bad=1x&half=%4&empty=&e2");
  std::string text;
  ASSERT_TRUE(read_param(params, "a", text));
  EXPECT_EQ(text, "x y+z");
  ASSERT_TRUE(read_param(params, "half", text));
  EXPECT_EQ(text, "%4");
  std::uint64_t number = 0;
  ASSERT_TRUE(read_param(params, "n", number));
  EXPECT_EQ(number, 12U);
  EXPECT_FALSE(read_param(params, "bad", number));
  EXPECT_FALSE(read_param(params, "absent", number));
  double real = 0;
  EXPECT_FALSE(read_param(parse_query("t=nan"), "t", real));
  EXPECT_FALSE(read_param(parse_query("t=inf"), "t", real));
  EXPECT_FALSE(read_param({{"a", std::string(5000, 'x')}}, "a", text));
}

}  // namespace

}  // namespace vramscope::serve
