// Lines of source as people read them.
#include "analyze/attribute/line_names.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

namespace vramscope::analyze {
namespace {

// Frames from files, innermost first; each is line 7.
class LineNamesTest : public ::testing::Test {
 protected:
  std::size_t stack(const std::vector<std::string>& files) {
    trace::Stack stack;
    for (const std::string& file : files) {
      words_.strings.push_back(file);
      trace::Frame frame;
      frame.file = static_cast<trace::StringId>(words_.strings.size() - 1);
      frame.line = 7;
      words_.frames.push_back(frame);
      stack.frames.push_back(static_cast<trace::FrameId>(words_.frames.size() - 1));
    }
    words_.stacks.push_back(stack);
    return words_.stacks.size() - 1;
  }
  void SetUp() override {
    words_.strings = {""};
    words_.frames.resize(1);
    words_.stacks.resize(1);
  }
  trace::Dictionaries words_;
};

TEST_F(LineNamesTest, TheInnermostLineThatTheUserWrote) {
  const std::size_t in_file =
      stack({"/venv/lib/python3.12/site-packages/torch/nn/module.py", "/project/model.py", "/project/train.py"});
  const std::size_t typed =
      stack({"/venv/site-packages/torch/nn/module.py", "<ipython-input-3-0a1b>", "/venv/site-packages/IPython/run.py"});
  const std::size_t cell = stack({"<eval_with_key>.3", "<command-12-line-1>", "/venv/site-packages/IPython/run.py"});
  const std::size_t generated =
      stack({"/tmp/torchinductor_me/3z/c3zylqkhjedn3b7zp3upukrelp53ua3roc4l6dui3zppikjcriwk.py", "/project/train.py"});
  const std::size_t autograph =
      stack({"/tmp/__autograph_generated_fileab12_x.py", "/venv/site-packages/tensorflow/api.py", "/project/train.py"});
  const std::size_t nobody = stack({"/venv/site-packages/torch/nn/linear.py"});
  const LineNames names(words_);
  EXPECT_EQ(names.of_stack(in_file), "model.py:7");
  EXPECT_EQ(names.of_stack(typed), "<ipython-input-3-0a1b>:7");
  EXPECT_EQ(names.of_stack(cell), "<command-12-line-1>:7");
  EXPECT_EQ(names.of_stack(generated), "train.py:7");
  EXPECT_EQ(names.of_stack(autograph), "train.py:7");
  EXPECT_EQ(names.of_stack(nobody), "linear.py:7");
  EXPECT_EQ(names.of_stack(0), "");
  EXPECT_EQ(names.of_stack(99), "");
}

// A framework may be anywhere, and a package of the user's may be where packages are installed.
TEST_F(LineNamesTest, FoldersDecideWhoseCodeItIs) {
  const std::size_t outside = stack({"/opt/libs/tensorflow/python/ops/func_graph.py", "/project/train.py"});
  const std::size_t similar = stack({"/opt/libs/tensorflow_models/model.py", "/project/train.py"});
  const std::size_t installed =
      stack({"/venv/site-packages/torch/nn/linear.py", "/venv/site-packages/mine/model.py", "/project/train.py"});
  EXPECT_EQ(LineNames(words_).of_stack(outside), "func_graph.py:7");
  EXPECT_EQ(LineNames(words_).of_stack(installed), "train.py:7");
  const LineNames names(words_, CodeFolders{{"/usr/lib/python3", "/opt/libs/tensorflow"}, "/venv/site-packages/mine"});
  EXPECT_EQ(names.of_stack(outside), "train.py:7");
  EXPECT_EQ(names.of_stack(similar), "tensorflow_models/model.py:7");
  EXPECT_EQ(names.of_stack(installed), "mine/model.py:7");
}

TEST_F(LineNamesTest, FilesOfOneNameAreToldApart) {
  const std::size_t a = stack({"/models/a/model.py"}), b = stack({"/models/b/model.py"});
  const std::size_t deep = stack({"/other/b/model.py"}), top = stack({"model.py"});
  const std::size_t alone = stack({"/models/a/train.py"});
  const std::size_t library = stack({"/venv/site-packages/keras/train.py"});
  const LineNames names(words_);
  EXPECT_EQ(names.of_stack(a), "a/model.py:7");
  EXPECT_EQ(names.of_stack(b), "models/b/model.py:7");
  EXPECT_EQ(names.of_stack(deep), "other/b/model.py:7");
  EXPECT_EQ(names.of_stack(top), "model.py:7");
  EXPECT_EQ(names.of_stack(alone), "train.py:7");  // a library's file does not make it longer
  EXPECT_EQ(names.of_stack(library), "keras/train.py:7");
}

// A profile of a few kilobytes can contain them.
TEST_F(LineNamesTest, VeryLongPathsThatDifferAtTheirStart) {
  std::string folders;
  for (int i = 0; i < 30'000; ++i) folders += "/a";
  std::vector<std::size_t> stacks;
  for (int i = 0; i < 100; ++i) stacks.push_back(stack({"/x" + std::to_string(i) + folders + "/f.py"}));
  const auto began = std::clock();
  const LineNames names(words_);
  EXPECT_LT(std::clock() - began, 5 * CLOCKS_PER_SEC);  // comparing part by part takes minutes
  EXPECT_EQ(names.of_stack(stacks[42]), "x42" + folders + "/f.py:7");
}

}  // namespace
}  // namespace vramscope::analyze
