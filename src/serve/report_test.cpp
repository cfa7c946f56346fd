#include "serve/report.h"

#include <gtest/gtest.h>

#include "support/gzip.h"

namespace vramscope::serve {

namespace {

// The page looks answers up by this text: it must be what requestKey() in ui/src/rpc/client.ts gives.
TEST(RequestKey, IsThePagesOwnSpelling) {
  EXPECT_EQ(request_key("hello", {}), "hello");
  EXPECT_EQ(request_key("instant", {{"trace", "0"}, {"at", "step:2+6.3ms"}, {"filter", ""}}),
            "instant?trace=0&at=step%3A2%2B6.3ms");
  EXPECT_EQ(request_key("peak", {{"open", "category,layer"}, {"filter", "op:/a b/ (x)'*~!"}}),
            "peak?open=category%2Clayer&filter=op%3A%2Fa%20b%2F%20(x)'*~!");
}

TEST(Base64, IsTheStandardOne) {
  EXPECT_EQ(support::base64(""), "");
  EXPECT_EQ(support::base64("f"), "Zg==");
  EXPECT_EQ(support::base64("fo"), "Zm8=");
  EXPECT_EQ(support::base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(support::base64(std::string("\xff\xfe\x00", 3)), "//4A");
}

TEST(Gzip, HasItsMagicAndIsSmaller) {
  const std::string packed = support::gzip(std::string(100000, 'a'), 9);
  EXPECT_EQ(packed.substr(0, 2), "\x1f\x8b");
  EXPECT_LT(packed.size(), 1000U);
}

}  // namespace

}  // namespace vramscope::serve
