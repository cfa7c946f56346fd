#include "cli/top/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vramscope::cli::top {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Keys, OneAtATime) {
  EXPECT_THAT(keys_in(""), IsEmpty());
  EXPECT_THAT(keys_in("q"), ElementsAre("q"));
  EXPECT_THAT(keys_in("\x1b"), ElementsAre("escape"));
  EXPECT_THAT(keys_in("\x1b[A"), ElementsAre("up"));
  EXPECT_THAT(keys_in("\x1bOB"), ElementsAre("down"));
  EXPECT_THAT(keys_in("\r"), ElementsAre("enter"));
  EXPECT_THAT(keys_in("\x7f"), ElementsAre("backspace"));
}

TEST(Keys, SeveralInOneRead) {
  EXPECT_THAT(keys_in("/a5\rp"), ElementsAre("/", "a", "5", "enter", "p"));
  EXPECT_THAT(keys_in("\x1b/x"), ElementsAre("escape", "/", "x"));
  EXPECT_THAT(keys_in("\x1b\x1b[B\x1b[Bq"), ElementsAre("escape", "down", "down", "q"));
}

TEST(Keys, ACharacterMayTakeSeveralBytes) { EXPECT_THAT(keys_in("é€😀a"), ElementsAre("é", "€", "😀", "a")); }

TEST(Keys, OtherSpecialKeysDoNothing) { EXPECT_THAT(keys_in("\x1b[15~\x1b[1;5Cs\x1bOP"), ElementsAre("s")); }

TEST(Keys, WhatIsCutOffIsNotRead) {
  EXPECT_THAT(keys_in("\x1b["), IsEmpty());
  EXPECT_THAT(keys_in("\x1b[1;"), IsEmpty());
  EXPECT_THAT(keys_in("\x1bO"), IsEmpty());
  EXPECT_THAT(keys_in("\xe2\x82"), ElementsAre("\xe2\x82"));
}

}  // namespace
}  // namespace vramscope::cli::top
