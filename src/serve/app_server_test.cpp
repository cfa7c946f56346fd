#include "serve/app_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace vramscope::serve {

namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

class AppServerTest : public ::testing::Test {
 protected:
  AppServerTest() {
    auto library = Library::open({}, true);
    EXPECT_TRUE(library);
    server_ = std::make_unique<AppServer>(std::move(*library), Access{.token = kToken, .host = "127.0.0.1", .port = 8123});
  }
  http::Response ask(std::string path, std::map<std::string, std::string, std::less<>> headers) {
    http::Request request;
    request.method = "GET";
    const std::size_t mark = path.find('?');
    request.path = path.substr(0, mark);
    if (mark != std::string::npos) request.query = path.substr(mark + 1);
    if (!headers.contains("host")) headers["host"] = "127.0.0.1:8123";
    request.headers = std::move(headers);
    return server_->answer(request, [] { return false; });
  }
  std::unique_ptr<AppServer> server_;
};

std::string header(const http::Response& response, std::string_view name) {
  for (const auto& [key, value] : response.headers)
    if (key == name) return value;
  return {};
}

TEST_F(AppServerTest, AnswersWhoHasTheToken) {
  EXPECT_EQ(ask("/api/hello", {{"x-vramscope-token", kToken}}).status, 200);
  EXPECT_EQ(ask("/api/hello", {{"authorization", fmt::format("Bearer {}", kToken)}}).status, 200);
  EXPECT_TRUE(ask("/api/hello", {{"authorization", fmt::format("Bearer {}", kToken)}}).trusted);
}

TEST_F(AppServerTest, RefusesWithoutTheToken) {
  EXPECT_FALSE(ask("/", {}).trusted);
  EXPECT_EQ(ask("/api/hello", {}).status, 401);
  EXPECT_EQ(ask("/events", {}).status, 401);
  EXPECT_EQ(ask("/api/hello?token=", {}).status, 401);
  EXPECT_EQ(ask("/api/hello", {{"x-vramscope-token", "0123456789abcdef0123456789abcdee"}}).status, 401);
  EXPECT_EQ(ask("/api/hello", {{"authorization", kToken}}).status, 401);
  EXPECT_FALSE(ask("/api/hello", {}).trusted);
}

// A cookie is sent to every port of the host; an address gets into histories, logs and lists of processes.
TEST_F(AppServerTest, TakesTheTokenFromAHeaderOnly) {
  EXPECT_EQ(ask("/api/hello", {{"cookie", fmt::format("a=b; vramscope_8123={}", kToken)}}).status, 401);
  EXPECT_EQ(ask(fmt::format("/api/hello?token={}", kToken), {}).status, 401);
  EXPECT_EQ(header(ask("/", {}), "Set-Cookie"), "");
}

TEST_F(AppServerTest, AnswersOnceWhatIsAskedAgain) {
  http::Request request;
  request.path = "/api/hello";
  request.headers = {{"host", "127.0.0.1:8123"}, {"x-vramscope-token", kToken}, {"accept-encoding", "gzip"}};
  EXPECT_FALSE(server_->quick_answer(request)) << "it is new: that is a worker's job";
  const auto first = server_->answer(request, [] { return false; });
  const auto again = server_->quick_answer(request);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->body, first.body);
  EXPECT_EQ(header(*again, "Content-Encoding"), "gzip");
}

TEST_F(AppServerTest, RefusesOtherHostsAndOrigins) {
  const auto with = [&](std::string name, std::string value) {
    return ask("/api/hello", {{"x-vramscope-token", kToken}, {std::move(name), std::move(value)}}).status;
  };
  EXPECT_EQ(with("host", "evil.example:8123"), 403);
  EXPECT_EQ(with("host", "127.0.0.1"), 403);
  EXPECT_EQ(with("host", "127.0.0.1:81"), 403);
  EXPECT_EQ(with("host", ""), 403);
  EXPECT_EQ(with("host", "localhost:8123"), 200);
  EXPECT_EQ(with("origin", "http://evil.example"), 403);
  EXPECT_EQ(with("origin", "null"), 403);
  EXPECT_EQ(with("origin", "http://127.0.0.1:8123"), 200);
  EXPECT_EQ(with("sec-fetch-site", "cross-site"), 403);
  EXPECT_EQ(with("sec-fetch-site", "same-site"), 403) << "another port of this machine";
  EXPECT_EQ(with("sec-fetch-site", "same-origin"), 200);
}

TEST_F(AppServerTest, TellsTheBrowserToTrustNothingElse) {
  const auto answer = ask("/api/hello", {{"x-vramscope-token", kToken}});
  EXPECT_NE(header(answer, "Content-Security-Policy").find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(header(answer, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header(answer, "Cache-Control"), "no-store");
  EXPECT_EQ(header(answer, "Cross-Origin-Resource-Policy"), "same-origin");
}

TEST_F(AppServerTest, SaysWhatIsWrongWithARequest) {
  const auto unknown = ask("/api/nonsense", {{"x-vramscope-token", kToken}});
  EXPECT_EQ(unknown.status, 422);
  const auto missing = ask("/api/overview", {{"x-vramscope-token", kToken}});
  EXPECT_EQ(missing.status, 422);
  EXPECT_NE(missing.body.find("\"trace\""), std::string::npos);
  const auto absent = ask("/api/overview?trace=7", {{"x-vramscope-token", kToken}});
  EXPECT_EQ(absent.status, 422);
  EXPECT_EQ(ask("/etc/passwd", {{"x-vramscope-token", kToken}}).status, 404);
  EXPECT_EQ(ask("/../../etc/passwd", {{"x-vramscope-token", kToken}}).status, 404);
}

TEST(Token, IsNewEachTime) {
  const auto one = make_token();
  const auto two = make_token();
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->size(), 32U);
  EXPECT_NE(*one, *two);
}

TEST(AnswerCache, KeepsTheNewestWithinItsSize) {
  AnswerCache cache(100);
  const auto text = [](std::size_t size) { return std::make_shared<const std::string>(size, 'x'); };
  for (const char* key : {"a", "b", "c", "d"}) cache.put(key, text(25));
  EXPECT_TRUE(cache.find("a"));  // now the newest
  cache.put("e", text(25));
  EXPECT_TRUE(cache.find("a"));
  EXPECT_FALSE(cache.find("b"));
  cache.put("huge", text(80));
  EXPECT_FALSE(cache.find("huge"));
}

}  // namespace

}  // namespace vramscope::serve
