// What an op's name reveals, on names that TensorFlow 2.16 to 2.21 gave.
#include "analyze/attribute/op_names.h"

#include <gtest/gtest.h>

namespace vramscope::analyze {
namespace {

std::string layer_of(std::string_view op) { return std::string(meaning_of(op, "output", trace::Framework::tensorflow).layer); }

TEST(OpNames, TheLayerIsTheScopeInsideTheModel) {
  EXPECT_EQ(layer_of("StatefulPartitionedCall/sequential_1/conv2d_1/Relu"), "conv2d_1");
  EXPECT_EQ(layer_of("StatefulPartitionedCall/gradient_tape/sequential_1/dense_1/MatMul/MatMul_1"), "dense_1");
  EXPECT_EQ(layer_of("dense/MatMul"), "dense");
  EXPECT_EQ(layer_of("while/body/_1/while/cond/then/_119/while/cond/StatefulPartitionedCall/sequential_1/dense_1/MatMul"),
            "dense_1");
}

TEST(OpNames, AFoldedConstantBelongsToNoLayer) {
  EXPECT_EQ(layer_of("ConstantFolding/StatefulPartitionedCall/gradient_tape/sequential_1/conv2d_1_2/ShapeN-matshapes-1"), "");
}

// Grappler's own optimizers train nothing.
TEST(OpNames, AnOptimizerOfGraphsIsNoOptimizer) {
  for (const char* op :
       {"ArithmeticOptimizer/ReorderCastLikeAndValuePreserving_float_Cast",
        "StatefulPartitionedCall/ArithmeticOptimizer/AddOpsRewrite_add",
        "StatefulPartitionedCall/model/dense/MatMul-0-TransposeNHWCToNCHW-LayoutOptimizer", "LoopOptimizer/removed_stack_push"})
    EXPECT_NE(meaning_of(op, "output", trace::Framework::tensorflow).stage, Stage::optimizer) << op;
  EXPECT_EQ(layer_of("StatefulPartitionedCall/ArithmeticOptimizer/AddOpsRewrite_add"), "");
  EXPECT_EQ(meaning_of("StatefulPartitionedCall/adam/Mul", "output", trace::Framework::tensorflow).stage, Stage::optimizer);
  EXPECT_EQ(meaning_of("my_optimizer/Mul", "output", trace::Framework::tensorflow).stage, Stage::optimizer);
}

TEST(OpNames, WhatABackwardOpMakesIsNotYetTheGradientOfAVariable) {
  EXPECT_EQ(meaning_of("gradient_tape/model/dense/MatMul/MatMul", "output", trace::Framework::tensorflow).category,
            trace::Category::activation_gradient);
  EXPECT_EQ(meaning_of("gradient_tape/model/conv/Conv2D/Conv2DBackpropFilter", "", trace::Framework::tensorflow).category,
            trace::Category::workspace);
}

// As seen on a GPU, where the outputs of element-wise kernels have no region.
TEST(OpNames, WithoutARegionOnlyLibrariesHaveAWorkspace) {
  const auto category = [](std::string_view op) { return meaning_of(op, "", trace::Framework::tensorflow).category; };
  for (const char* op : {"Relu", "SquaredDifference", "Mul", "AddV2"}) EXPECT_NE(category(op), trace::Category::workspace) << op;
  for (const char* op : {"Conv2D", "Conv2DBackpropFilter", "MatMul", "FusedBatchNormV3", "ScratchBuffer", "model/conv/Conv2D"})
    EXPECT_EQ(category(op), trace::Category::workspace) << op;
}

TEST(OpNames, AnOptimizerHasNoWorkspaceOfItsOwn) {
  const auto category = [](std::string_view op) { return meaning_of(op, "", trace::Framework::tensorflow).category; };
  for (const char* op : {"StatefulPartitionedCall/adam/Mul_4", "adam/cond/truediv"})
    EXPECT_EQ(category(op), trace::Category::temporary) << op;
  EXPECT_EQ(category("muon/MatMul_2"), trace::Category::workspace);
}

// Keras sets sums of gradients back to zeros, which the graph keeps: TensorFlow folds the op that makes them.
TEST(OpNames, ZerosWithoutARegionAreAConstantOfTheGraph) {
  const auto category = [](std::string_view op, std::string_view region) {
    return meaning_of(op, region, trace::Framework::tensorflow).category;
  };
  EXPECT_EQ(category("StatefulPartitionedCall/adam/cond/then/_32/adam/cond/zeros_2", ""), trace::Category::constant);
  EXPECT_EQ(category("StatefulPartitionedCall/adam/cond/then/_32/adam/cond/zeros_2", "output"), trace::Category::temporary);
  EXPECT_NE(category("zeros", ""), trace::Category::constant) << "outside of graphs";
}

TEST(OpNames, AGradientInAnotherOrderOfDimensionsIsAGradient) {
  const auto category = [](std::string_view op) { return meaning_of(op, "output", trace::Framework::tensorflow).category; };
  EXPECT_EQ(category("StatefulPartitionedCall/AddN_8-2-TransposeNHWCToNCHW-LayoutOptimizer"),
            trace::Category::activation_gradient);
  EXPECT_EQ(category("StatefulPartitionedCall/model/conv/Conv2D-0-TransposeNHWCToNCHW-LayoutOptimizer"),
            trace::Category::temporary);
}

// TensorFlow computes it once, without a region, and keeps it in the graph.
TEST(OpNames, WhatIsFoldedIsAConstant) {
  for (const char* op : {"_0__cf__0", "range/_0__cf__0", "StatefulPartitionedCall/gradient_tape/mul/_3__cf__3"})
    EXPECT_EQ(meaning_of(op, "", trace::Framework::tensorflow).category, trace::Category::constant) << op;
}

TEST(OpNames, AScopeThatTensorFlowMadeIsNoLayer) {
  EXPECT_EQ(layer_of("_211/Mul"), "");
  EXPECT_EQ(layer_of("StatefulPartitionedCall/_7/AddV2"), "");
}

TEST(OpNames, AnArgumentOfAnOpMakesTheOpNoLayer) {
  for (const char* op :
       {"Slice/begin", "Slice/size", "Reshape/shape", "GatherV2_1/axis", "range/_0__cf__0", "strided_slice_2/stack_1"})
    EXPECT_EQ(layer_of(op), "") << op;
  EXPECT_EQ(layer_of("StatefulPartitionedCall/model/flatten/Reshape/shape"), "flatten");
  EXPECT_EQ(layer_of("model/merge/stack"), "merge");  // an op of its own, in a layer
  EXPECT_EQ(layer_of("merge//shape"), "merge");
}

}  // namespace
}  // namespace vramscope::analyze
