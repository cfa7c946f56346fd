// Source lines in what XLA writes about a module: tables of stacks (new), and the line itself (old).
#include "analyze/xla_frames.h"

#include <gtest/gtest.h>

#include <string>

#include <fmt/format.h>

#include "analyze/xla_dump.h"

namespace vramscope::analyze {
namespace {

// A call in train.py:13 of linear.py:422, which is a library's. `none` is how the text writes that a frame has no parent.
std::string tables(int none) {
  return fmt::format(
      "HloModule jit_step, is_scheduled=true\n\nFileNames\n1 \"/data/train.py\"\n2 \"/x/site-packages/flax/linear.py\"\n\n"
      "FunctionNames\n1 \"<module>\"\n2 \"Linear.__call__\"\n\n"
      "FileLocations\n1 {{file_name_id=1 function_name_id=1 line=13 end_line=13 column=4 end_column=9}}\n"
      "2 {{file_name_id=2 function_name_id=2 line=422 end_line=428 column=8 end_column=5}}\n\n"
      "StackFrames\n1 {{file_location_id=1 parent_frame_id={}}}\n2 {{file_location_id=2 parent_frame_id={}}}\n\n"
      "%fused (a: f32[]) -> f32[] {{\n3 \"/not/a/file.py\"\n",
      none, none + 1);
}

TEST(XlaFrames, TheInnermostFrameOfTheUserCounts) {
  for (const int none : {0, 1}) {
    const XlaFrames frames(tables(none), {});
    EXPECT_EQ(frames.line_of(2), "train.py:13") << none;
    EXPECT_EQ(frames.line_of(1), "train.py:13") << none;
    EXPECT_EQ(frames.line_of(3), "") << none;
    EXPECT_EQ(frames.line_of(0), "") << none;
  }
}

TEST(XlaFrames, LibrariesAreNamedIfThereIsNothingElse) {
  const XlaFrames frames(
      "FileNames\n1 \"/x/site-packages/flax/linear.py\"\nFileLocations\n1 {file_name_id=1 line=7}\n"
      "StackFrames\n1 {file_location_id=1 parent_frame_id=0}\n",
      {});
  EXPECT_EQ(frames.line_of(1), "linear.py:7");
}

TEST(XlaFrames, ACircleEnds) {
  const XlaFrames frames("StackFrames\n1 {file_location_id=9 parent_frame_id=0}\n2 {file_location_id=9 parent_frame_id=2}\n", {});
  EXPECT_EQ(frames.line_of(2), "");
}

// One step: x is the forward pass' and kept, g has a parameter's shape, r is computed again, t is gone before the backward pass.
constexpr std::string_view kPlan =
    "BufferAssignment:\n"
    "allocation 0: size 64, parameter 0, shape |f32[4,4]| at ShapeIndex {}:\n"
    "allocation 1: size 256, preallocated-temp:\n"
    " value: <1 x @0> (size=64,offset=0): f32[8,2]{1,0}\n"
    " value: <2 g @0> (size=64,offset=64): f32[4,4]{1,0}\n"
    " value: <3 r @0> (size=64,offset=128): f32[8,2]{1,0}\n"
    " value: <4 a @0> (size=64,offset=192): f32[8,2]{1,0}\n"
    "\nUsed values:\n"
    "<1 x @0>\n from instruction: %x = f32[8,2]{1,0} dot(), metadata={op_name=\"jit(step)/jvp(dense)/dot_general\" "
    "source_file=\"/data/net.py\" source_line=31}\n"
    "<2 g @0>\n from instruction: %g = f32[4,4]{1,0} dot(), metadata={op_name=\"jit(step)/transpose(jvp(dense))/dot_general\" "
    "stack_frame_id=2}\n"
    "<3 r @0>\n from instruction: %r = f32[8,2]{1,0} tanh(), "
    "metadata={op_name=\"jit(step)/transpose(jvp(checkpoint))/rematted_computation/tanh\" stack_frame_id=2}\n"
    "<4 a @0>\n from instruction: %a = f32[8,2]{1,0} dot(), metadata={op_name=\"jit(step)/transpose(jvp(dense))/mul\"}\n"
    "\n BufferLiveRange:\n    x{}:0-5\n    g{}:3-6\n    r{}:3-6\n    a{}:3-6\n";

TEST(XlaDump, PartsHaveCategoriesAndLines) {
  const auto blocks = read_buffer_assignment(kPlan);
  ASSERT_TRUE(blocks) << blocks.error().message;
  ASSERT_EQ(blocks->size(), 1u);
  std::map<std::string, XlaPart> parts;
  for (const XlaPart& part : blocks->front().parts) parts[part.instruction] = part;
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts["x"].category, "activations");
  EXPECT_EQ(parts["x"].line, "net.py:31");
  EXPECT_EQ(parts["g"].category, "gradients");
  EXPECT_EQ(parts["g"].frame, 2u);
  EXPECT_EQ(parts["r"].category, "recomputed activations");
  EXPECT_EQ(parts["a"].category, "activation gradients");
}

}  // namespace
}  // namespace vramscope::analyze
