#include "support/json_writer.h"

#include <gtest/gtest.h>

namespace vramscope::support {
namespace {

TEST(JsonWriter, NestsAndSeparates) {
  JsonWriter json(false);
  json.begin_object().member("a", 1).key("b").begin_array().value("x").value(true).null().begin_object().end_object().end_array();
  json.member("c", 0.5).end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"b":["x",true,null,{}],"c":0.5})");
}

TEST(JsonWriter, BeginsAnewAfterClear) {
  JsonWriter json(false);
  json.begin_object().member("a", 1).end_object();
  json.clear();
  EXPECT_EQ(json.begin_array().value(2).end_array().text(), "[2]");
}

TEST(JsonWriter, IndentsWhenPretty) {
  JsonWriter json;
  json.begin_object()
      .member("a", "x\"y")
      .key("b")
      .begin_array()
      .value(1)
      .end_array()
      .key("c")
      .begin_array()
      .end_array()
      .end_object();
  EXPECT_EQ(json.text(), "{\n  \"a\": \"x\\\"y\",\n  \"b\": [\n    1\n  ],\n  \"c\": []\n}");
}

TEST(JsonWriter, IndentsADocumentToItsPlace) {
  JsonWriter inner;
  inner.begin_object().member("a", "x\ny").end_object();
  JsonWriter json;
  json.begin_array().document(inner.text()).document(inner.text()).end_array();
  EXPECT_EQ(json.text(), "[\n  {\n    \"a\": \"x\\u000ay\"\n  },\n  {\n    \"a\": \"x\\u000ay\"\n  }\n]");
}

}  // namespace
}  // namespace vramscope::support
