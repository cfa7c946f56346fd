// What an op's name tells, on names that TensorFlow 2.16 to 2.21 gave.
#include "analyze/op_names.h"

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
