#include "support/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/json_writer.h"

namespace vramscope::support {
namespace {

using testing::HasSubstr;
using namespace std::string_view_literals;

std::string repeated(std::string_view part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

TEST(JsonReader, ReadsEveryType) {
  const JsonValue value =
      read_json(R"( {"a": [1, -2, 2.5e3, 18446744073709551615], "b": "x", "c": true, "d": null, "e": {}} )").value();
  const JsonValue::Array& a = *value.member("a")->array();
  ASSERT_EQ(a.size(), 4u);
  EXPECT_EQ(a[0].count(), 1u);
  EXPECT_EQ(a[1].count(), std::nullopt);
  EXPECT_EQ(a[1].number(), -2);
  EXPECT_EQ(a[2].number(), 2500);
  EXPECT_EQ(a[3].count(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(value.member("b")->text(), "x");
  EXPECT_EQ(value.member("b")->count(), std::nullopt);
  EXPECT_EQ(value.member("c")->truth(), true);
  EXPECT_TRUE(value.member("d")->is_null());
  EXPECT_TRUE(value.member("e")->object()->empty());
  EXPECT_EQ(value.member("f"), nullptr);
  EXPECT_EQ(a[0].member("a"), nullptr);
}

TEST(JsonReader, UnderstandsEscapes) {
  EXPECT_EQ(read_json(R"("Gr\u00f6\u00dfe.py \ud83d\ude00 \"\\\/\n\u0000.")").value().text(), "Größe.py 😀 \"\\/\n\0."sv);
}

TEST(JsonReader, TheLastOfTwoMembersCounts) { EXPECT_EQ(read_json(R"({"a":1,"a":2})").value().member("a")->count(), 2u); }

TEST(JsonReader, SaysWhereItIsWrong) {
  for (const std::string text : {"", "{", "[1,]", "{\"a\":1,}", "{a:1}", "nul", "01", "\"a", "\"\\ud800\"", "\"\\x\"", "\"\xff\"",
                                 "[1] 2", "'a'", "1e999", "NaN"}) {
    const auto value = read_json(text);
    ASSERT_FALSE(value) << text;
    EXPECT_THAT(value.error().message, HasSubstr("byte ")) << text;
  }
  EXPECT_THAT(read_json("[1, 2 3]").error().message, HasSubstr("byte 6:"));
  EXPECT_FALSE(read_json(std::string_view("1\0", 2)));
  EXPECT_FALSE(read_json(std::string_view("\"a\0b\"", 5)));
}

TEST(JsonReader, HostileDepthAndSizeEndInAnError) {
  EXPECT_TRUE(read_json(repeated("[", 64) + repeated("]", 64)));
  EXPECT_THAT(read_json(repeated("[", 65) + repeated("]", 65)).error().message, HasSubstr("nested too deeply"));
  EXPECT_THAT(read_json(repeated("[", 10'000'000)).error().message, HasSubstr("nested too deeply"));
  EXPECT_THAT(read_json(repeated("{\"a\":", 1'000'000)).error().message, HasSubstr("nested too deeply"));
  EXPECT_THAT(read_json("[" + repeated("0,", 2'000'000) + "0]").error().message, HasSubstr("too many values"));
}

// The writer's text by a parser that is not ours.
TEST(JsonReader, ReadsWhatTheWriterWrites) {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  for (const bool pretty : {false, true}) {
    JsonWriter json(pretty);
    json.begin_object().member("every byte", bytes).member("largest", std::numeric_limits<std::uint64_t>::max());
    json.member("least", std::numeric_limits<std::int64_t>::min()).member("third", 1.0 / 3).key("list").begin_array();
    json.value("\u202e\u0085").value(true).null().begin_object().end_object().end_array().end_object();
    const auto value = read_json(json.text());
    ASSERT_TRUE(value) << value.error().message;
    const std::string_view text = value->member("every byte")->text().value();
    EXPECT_EQ(text.substr(0, 128), std::string_view(bytes).substr(0, 128));
    EXPECT_EQ(value->member("largest")->count(), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(value->member("least")->number(), static_cast<double>(std::numeric_limits<std::int64_t>::min()));
    EXPECT_EQ(value->member("third")->number(), 1.0 / 3);
    ASSERT_EQ(value->member("list")->array()->size(), 4u);
    EXPECT_EQ(value->member("list")->array()->front().text(), "\u202e\u0085");
  }
}

}  // namespace
}  // namespace vramscope::support
