#include "serve/http/message.h"

#include <gtest/gtest.h>

namespace vramscope::serve::http {

namespace {

TEST(HttpMessage, ReadsAHead) {
  const auto request = parse_head("GET /api/peak?at=steady HTTP/1.1\r\nHost: 127.0.0.1:80\r\nX-Thing:  a b \r\n\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/api/peak");
  EXPECT_EQ(request->query, "at=steady");
  EXPECT_EQ(request->header("x-thing"), "a b");
  EXPECT_TRUE(request->keep_alive);
}

TEST(HttpMessage, KeepsOrClosesAsAsked) {
  EXPECT_FALSE(parse_head("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n")->keep_alive);
  EXPECT_FALSE(parse_head("GET / HTTP/1.0\r\n\r\n")->keep_alive);
  EXPECT_TRUE(parse_head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")->keep_alive);
}

TEST(HttpMessage, RefusesWhatIsMalformedOrHasABody) {
  for (const char* head :
       {"", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2\r\n\r\n", "GET http://x/ HTTP/1.1\r\n\r\n",
        "GET /a\x01"
        "b HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\n: x\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"})
    EXPECT_FALSE(parse_head(head)) << head;
}

}  // namespace

}  // namespace vramscope::serve::http
