#include "support/python_paths.h"

#include <gtest/gtest.h>

namespace vramscope::support {
namespace {

TEST(PythonPaths, WhatPythonAndItsPackageManagersInstalled) {
  EXPECT_TRUE(is_installed_python("/usr/lib/python3.11/threading.py"));
  EXPECT_TRUE(is_installed_python("/opt/conda/lib/python3.12/site-packages/keras/src/layers/core/dense.py"));
  EXPECT_TRUE(is_installed_python("/usr/lib/python3/dist-packages/torch/nn/modules/linear.py"));
  EXPECT_TRUE(is_installed_python("/usr/lib64/python3.9/site-packages/jax/_src/api.py"));
}

TEST(PythonPaths, OurOwnFilesInACheckout) { EXPECT_TRUE(is_installed_python("/srv/checkout/python/vramscope/_hooks/torch.py")); }

TEST(PythonPaths, FilesOfTorchInductor) {
  EXPECT_TRUE(is_generated_python("/tmp/torchinductor_root/bs/cbs5m2qxqtfga6i6lioeayxk7ghvj6khjybjcynvik665knehvgw.py"));
  EXPECT_FALSE(is_generated_python("/srv/study/train_the_model_that_has_a_name_of_fifty_two_characte.py"));
  EXPECT_FALSE(is_generated_python("/srv/study/train.py"));
  EXPECT_FALSE(is_generated_python(""));
}

TEST(PythonPaths, FoldersOfTheUserWithSimilarNames) {
  EXPECT_FALSE(is_installed_python("/srv/study/vramscope/examples/train.py"));
  EXPECT_FALSE(is_installed_python("/vramscope/train.py"));
  EXPECT_FALSE(is_installed_python("/srv/study/lib/python/train.py"));
  EXPECT_FALSE(is_installed_python("/srv/study/site-packages-study/train.py"));
}

}  // namespace
}  // namespace vramscope::support
