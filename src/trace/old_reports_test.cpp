#include "trace/old_reports.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "trace/cut_stack.h"
#include "trace/dictionary.h"

namespace vramscope::trace {
namespace {

// An old trace: its strings, and its settings as they come.
class OldTrace : public ::testing::Test {
 protected:
  StringId string(std::string_view text) {
    all_.strings.emplace_back(text);
    return static_cast<StringId>(all_.strings.size() - 1);
  }
  void setting(std::string_view key, std::string_view value) {
    chunk_.kind.push_back(EventKind::setting);
    chunk_.tables.setting.push({string(key), string(value)});
  }
  void upgrade() { OldReports(all_, memory_).upgrade(chunk_); }
  const std::string& text(StringId id) const { return all_.strings.at(std::to_underlying(id)); }

  Dictionaries all_ = initial_dictionaries();
  Chunk chunk_;
  support::MemoryBudget memory_{1 << 20};
};

TEST_F(OldTrace, FactsBecomeTheEventsThatTheyAre) {
  setting("tensorflow.version", "2.21.0");
  setting(
      "fact.retrace.\\u00fc.py:9",
      R"({"file": "/data/Gr\u00f6\u00dfe.py", "function": "\u00fcberholt", "line": 9, "reason": "\"n\" -> \ud83d\ude00", "traces": 12})");
  setting("fact.held_tensors.train.py:31",
          R"({"bytes": 640, "container": "list", "count": 7, "file": "/data/train.py", "line": 31, "name": "verl\u00e4ufe", )"
          R"("owner": "global of __main__", "per_step": 1.25})");
  setting("fact.float64.x", R"({"bytes": 131072, "file": "a.py", "line": 6, "name": "w"})");
  upgrade();
  EXPECT_EQ(chunk_.kind,
            (std::vector{EventKind::setting, EventKind::retrace, EventKind::held_tensors, EventKind::float64_variable}));
  ASSERT_EQ(chunk_.tables.setting.size(), 1u);
  EXPECT_EQ(text(chunk_.tables.setting.key[0]), "tensorflow.version");
  const Retrace retrace = chunk_.tables.retrace.row(0);
  EXPECT_EQ(text(retrace.file), "/data/Größe.py");
  EXPECT_EQ(text(retrace.function), "überholt");
  EXPECT_EQ(text(retrace.reason), "\"n\" -> 😀");
  EXPECT_EQ(retrace.line, 9u);
  EXPECT_EQ(retrace.traces, 12u);
  const HeldTensors held = chunk_.tables.held_tensors.row(0);
  EXPECT_EQ(text(held.name), "verläufe");
  EXPECT_EQ(text(held.container), "list");
  EXPECT_EQ(held.count, 7u);
  EXPECT_EQ(held.bytes, 640u);
  EXPECT_EQ(held.per_1000_steps, 1250u);
  EXPECT_EQ(chunk_.tables.float64_variable.row(0).bytes, 131072u);
}

TEST_F(OldTrace, OpsOfVariablesBecomeEvents) {
  setting("gradient_op.gradient_tape/dense/MatMul", "dense/kernel");
  setting("variable_op.adam/AssignAddVariableOp", "optimizer_state adam/größe");
  setting("variable_value.mul", "parameter dense/kernel");
  setting("variable_op.other", "something else");  // not as we wrote it: it stays
  upgrade();
  EXPECT_EQ(chunk_.kind,
            (std::vector{EventKind::variable_op, EventKind::variable_op, EventKind::variable_op, EventKind::setting}));
  const VariableOp gradient = chunk_.tables.variable_op.row(0), storage = chunk_.tables.variable_op.row(1),
                   value = chunk_.tables.variable_op.row(2);
  EXPECT_EQ(text(gradient.op), "gradient_tape/dense/MatMul");
  EXPECT_EQ(gradient.role, OpRole::gradient);
  EXPECT_EQ(gradient.category, Category::gradient);
  EXPECT_EQ(text(gradient.variable), "dense/kernel");
  EXPECT_EQ(text(storage.op), "adam/AssignAddVariableOp");
  EXPECT_EQ(storage.role, OpRole::storage);
  EXPECT_EQ(storage.category, Category::optimizer_state);
  EXPECT_EQ(text(storage.variable), "adam/größe");
  EXPECT_EQ(value.role, OpRole::value);
  EXPECT_EQ(value.category, Category::parameter);
}

TEST_F(OldTrace, WhatIsNoJsonStaysASetting) {
  setting("fact.retrace.a", "~1f2e3d4c5b6a");  // of an anonymous trace
  setting("fact.retrace.b", R"({"file": "a.py)");
  setting("fact.retrace.c", R"({"file": {"deep": 1}})");
  setting("fact.unheard.d", R"({"file": "a.py"})");
  upgrade();
  EXPECT_EQ(chunk_.kind, std::vector(4, EventKind::setting));
  EXPECT_EQ(chunk_.tables.setting.size(), 4u);
}

TEST_F(OldTrace, TakesNoMoreMemoryThanItMay) {
  memory_.take((1 << 20) - 100);
  setting("fact.retrace.a", R"({"file": "a.py", "line": 3})");
  setting("variable_value.mul", "parameter dense/kernel");
  const std::size_t before = all_.strings.size();
  upgrade();
  EXPECT_EQ(all_.strings.size(), before);
  EXPECT_EQ(chunk_.tables.setting.size(), 2u);
}

TEST_F(OldTrace, AStackThatWasCutSaysByHowMuch) {
  all_.frames = {{string("f"), string("a.py"), 3, 0, {}}, {string(more_frames(745)), {}, 0, 0, {}}};
  all_.stacks.push_back({1, {FrameId{0}, FrameId{1}}, 0});
  all_.stacks.push_back({2, {FrameId{0}}, 0});
  count_frames_that_were_cut(all_);
  EXPECT_EQ(all_.stacks[1].frames, std::vector{FrameId{0}});
  EXPECT_EQ(all_.stacks[1].cut, 745u);
  EXPECT_EQ(all_.stacks[2].frames, std::vector{FrameId{0}});
  EXPECT_EQ(all_.stacks[2].cut, 0u);
}

}  // namespace
}  // namespace vramscope::trace
