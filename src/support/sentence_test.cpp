#include "support/sentence.h"

#include <gtest/gtest.h>

namespace vramscope::support {
namespace {

TEST(Sentence, HasACapitalLetterAndAPeriod) {
  EXPECT_EQ(as_sentence("free it earlier"), "Free it earlier.");
  EXPECT_EQ(as_sentence("Free it earlier."), "Free it earlier.");
  EXPECT_EQ(as_sentence("does it grow?"), "Does it grow?");
  EXPECT_EQ(as_sentence(""), "");
}

TEST(Sentence, KeepsANameAsItIs) {
  EXPECT_EQ(as_sentence("train.py:8 holds the most"), "train.py:8 holds the most.");
  EXPECT_EQ(as_sentence("memory_limit is too low"), "memory_limit is too low.");
}

}  // namespace
}  // namespace vramscope::support
