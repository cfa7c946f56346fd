#include "support/json_text.h"

#include <gtest/gtest.h>

namespace vramscope::support {
namespace {

std::string json(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonText, PlainTextIsQuoted) {
  EXPECT_EQ(json(""), R"("")");
  EXPECT_EQ(json("model/dense:0"), R"("model/dense:0")");
}

TEST(JsonText, QuotesBackslashesAndControlCharactersAreEscaped) {
  EXPECT_EQ(json("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(json(std::string_view("\0\n\x1f\x7f", 4)), R"("\u0000\u000a\u001f\u007f")");
}

TEST(JsonText, ValidUtf8IsKept) { EXPECT_EQ(json("Größe € 😀"), "\"Größe € 😀\""); }

TEST(JsonText, WhatATerminalWouldObeyIsEscaped) {
  EXPECT_EQ(json("a\u202egnp.exe\u202c"), R"("a\u202egnp.exe\u202c")");
  EXPECT_EQ(json("\u061c\u200f\u2028\u2066\u2069\u009b"), R"("\u061c\u200f\u2028\u2066\u2069\u009b")");
  EXPECT_EQ(json("a##[error]b###c#"), R"("a\u0023#[error]b\u0023\u0023#c#")");  // a CI system that shows it as a line
  EXPECT_EQ(json("שלום \u00a0\u2026"), "\"שלום \u00a0\u2026\"");                // text of another direction is text
}

TEST(JsonText, EachByteThatIsNoUtf8IsReplaced) {
  EXPECT_EQ(json("\xff"), R"("\ufffd")");
  EXPECT_EQ(json("a\xc3"), R"("a\ufffd")");          // cut
  EXPECT_EQ(json("\xc0\xaf"), R"("\ufffd\ufffd")");  // longer than needed
  EXPECT_EQ(json("\xe0\x80\xaf"), R"("\ufffd\ufffd\ufffd")");
  EXPECT_EQ(json("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");            // surrogate
  EXPECT_EQ(json("\xf4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")");  // above U+10FFFF
}

}  // namespace
}  // namespace vramscope::support
